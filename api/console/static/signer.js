// Signatures of a key that the page keeps itself: for paper money only. Numbers are BigInt and take
// different times for different keys, so whoever can measure this page could learn its key.

const utf8 = new TextEncoder();

export const hex = bytes => "0x" + Array.from(bytes, b => b.toString(16).padStart(2, "0")).join("");

export function unhex(text) {
	const digits = text.replace(/^0x/i, "");
	if (digits.length % 2 || !/^[0-9a-f]*$/i.test(digits)) throw new Error("not hex digits"); // it may be a key: not said again
	return Uint8Array.from(digits.match(/../g) ?? [], pair => parseInt(pair, 16));
}

function join(...parts) {
	const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
	let at = 0;
	for (const p of parts) {
		all.set(p, at);
		at += p.length;
	}
	return all;
}

// word is a number in 32 bytes, the highest first.
const word = n => unhex(BigInt(n).toString(16).padStart(64, "0"));
const number = bytes => bytes.length ? BigInt(hex(bytes)) : 0n;

// Keccak-256.

const lane = (1n << 64n) - 1n;
const [rounds, turns] = (() => {
	const rounds = [], turns = Array(25).fill(0n);
	for (let i = 0, r = 1; i < 24; i++) {
		let c = 0n;
		for (let j = 0; j < 7; j++) {
			if (r & 1) c |= 1n << BigInt((1 << j) - 1);
			r = r << 1 ^ (r >> 7) * 0x171;
		}
		rounds.push(c);
	}
	for (let t = 0, x = 1, y = 0; t < 24; t++) {
		turns[x + 5 * y] = BigInt((t + 1) * (t + 2) / 2 % 64);
		[x, y] = [y, (2 * x + 3 * y) % 5];
	}
	return [rounds, turns];
})();
const turn = (v, n) => n === 0n ? v : (v << n | v >> 64n - n) & lane;

function permute(a) {
	const c = Array(5), b = Array(25);
	for (const constant of rounds) {
		for (let x = 0; x < 5; x++) c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
		for (let x = 0; x < 5; x++) {
			const d = c[(x + 4) % 5] ^ turn(c[(x + 1) % 5], 1n);
			for (let y = 0; y < 25; y += 5) a[x + y] ^= d;
		}
		for (let x = 0; x < 5; x++) {
			for (let y = 0; y < 5; y++) b[y + 5 * ((2 * x + 3 * y) % 5)] = turn(a[x + 5 * y], turns[x + 5 * y]);
		}
		for (let y = 0; y < 25; y += 5) {
			for (let x = 0; x < 5; x++) a[x + y] = b[x + y] ^ ~b[(x + 1) % 5 + y] & lane & b[(x + 2) % 5 + y];
		}
		a[0] ^= constant;
	}
}

export function keccak(bytes) {
	const rate = 136, padded = new Uint8Array(Math.ceil((bytes.length + 1) / rate) * rate);
	padded.set(bytes);
	padded[bytes.length] ^= 1;
	padded[padded.length - 1] ^= 0x80;
	const state = Array(25).fill(0n), view = new DataView(padded.buffer);
	for (let at = 0; at < padded.length; at += rate) {
		for (let i = 0; i < rate / 8; i++) state[i] ^= view.getBigUint64(at + 8 * i, true);
		permute(state);
	}
	const out = new DataView(new ArrayBuffer(32));
	for (let i = 0; i < 4; i++) out.setBigUint64(8 * i, state[i], true);
	return new Uint8Array(out.buffer);
}

const hashed = text => keccak(utf8.encode(text));

// SHA-256. The browser's own answers later than a signature wants it, and only in secure contexts.

const [start, steps] = (() => {
	const fraction = v => (v - Math.floor(v)) * 2 ** 32 | 0, start = [], steps = [];
	for (let n = 2; steps.length < 64; n++) {
		let prime = true;
		for (let d = 2; d * d <= n; d++) prime &&= n % d > 0;
		if (!prime) continue;
		if (start.length < 8) start.push(fraction(Math.sqrt(n)));
		steps.push(fraction(Math.cbrt(n)));
	}
	return [start, steps];
})();

export function sha256(bytes) {
	const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64), view = new DataView(padded.buffer);
	padded.set(bytes);
	padded[bytes.length] = 0x80;
	view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
	const h = Int32Array.from(start), w = new Int32Array(64);
	const right = (v, n) => v >>> n | v << 32 - n;
	for (let at = 0; at < padded.length; at += 64) {
		for (let i = 0; i < 64; i++) {
			if (i < 16) {
				w[i] = view.getInt32(at + 4 * i);
				continue;
			}
			const x = w[i - 15], y = w[i - 2];
			w[i] = w[i - 16] + w[i - 7] + (right(x, 7) ^ right(x, 18) ^ x >>> 3) +
				(right(y, 17) ^ right(y, 19) ^ y >>> 10);
		}
		let [a, b, c, d, e, f, g, k] = h;
		for (let i = 0; i < 64; i++) {
			const one = k + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + (e & f ^ ~e & g) + steps[i] + w[i] | 0;
			const two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + (a & b ^ a & c ^ b & c) | 0;
			[k, g, f, e, d, c, b, a] = [g, f, e, d + one | 0, c, b, a, one + two | 0];
		}
		[a, b, c, d, e, f, g, k].forEach((v, i) => { h[i] += v; });
	}
	const out = new DataView(new ArrayBuffer(32));
	h.forEach((v, i) => out.setInt32(4 * i, v));
	return new Uint8Array(out.buffer);
}

function hmac(key, bytes) {
	const block = new Uint8Array(64);
	block.set(key.length > 64 ? sha256(key) : key);
	return sha256(join(block.map(b => b ^ 0x5c), sha256(join(block.map(b => b ^ 0x36), bytes))));
}

// seal is the HMAC-SHA256 of a text by an API key's secret, in base64url as the secret itself. Where
// the browser has a faster one of its own, that is used.
export async function seal(secret, text, subtle = globalThis.crypto?.subtle) {
	const plain = atob(secret.replaceAll("-", "+").replaceAll("_", "/"));
	const key = Uint8Array.from(plain, c => c.charCodeAt(0)), bytes = utf8.encode(text);
	let mac;
	if (subtle) {
		const algorithm = { name: "HMAC", hash: "SHA-256" };
		mac = new Uint8Array(await subtle.sign("HMAC",
			await subtle.importKey("raw", key, algorithm, false, ["sign"]), bytes));
	} else {
		mac = hmac(key, bytes);
	}
	return btoa(String.fromCharCode(...mac)).replaceAll("+", "-").replaceAll("/", "_");
}

// The curve secp256k1: y² = x³ + 7 over the numbers below p; its points are multiples of g, n of them.

const p = 2n ** 256n - 2n ** 32n - 977n;
const n = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const g = [0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798n,
	0x483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8n, 1n];
const mod = (v, m) => (v %= m) < 0n ? v + m : v;

function inverse(v, m) {
	let [a, b, x, y] = [mod(v, m), m, 1n, 0n];
	while (a > 1n) {
		const q = b / a;
		[a, b, x, y] = [b - q * a, a, y - q * x, x];
	}
	return mod(x, m);
}

// Points are [x, y, z] for x/z², y/z³; z is 0 for the point at infinity.
function double([x, y, z]) {
	const yy = y * y % p, s = 4n * x * yy % p, m = 3n * x * x % p, u = mod(m * m - 2n * s, p);
	return [u, mod(m * (s - u) - 8n * yy * yy, p), 2n * y * z % p];
}

function add(a, b) {
	if (a[2] === 0n) return b;
	if (b[2] === 0n) return a;
	const aa = a[2] * a[2] % p, bb = b[2] * b[2] % p;
	const u = a[0] * bb % p, s = a[1] * bb * b[2] % p;
	const h = mod(b[0] * aa - u, p), r = mod(b[1] * aa * a[2] - s, p);
	if (h === 0n) return r === 0n ? double(a) : [1n, 1n, 0n];
	const hh = h * h % p, hhh = h * hh % p, v = u * hh % p, x = mod(r * r - hhh - 2n * v, p);
	return [x, mod(r * (v - x) - s * hhh, p), h * a[2] * b[2] % p];
}

// times is the point k·g as plain [x, y].
function times(k) {
	let sum = [1n, 1n, 0n];
	for (let at = g; k > 0n; k >>= 1n, at = double(at)) if (k & 1n) sum = add(sum, at);
	const i = inverse(sum[2], p), ii = i * i % p;
	return [sum[0] * ii % p, sum[1] * ii * i % p];
}

// checksum writes an address with the letter case that guards it against slips.
export function checksum(address) {
	const digits = address.slice(2).toLowerCase(), mask = hex(hashed(digits)).slice(2);
	return "0x" + Array.from(digits, (c, i) => mask[i] > "7" ? c.toUpperCase() : c).join("");
}

export function addressOf(key) {
	const [x, y] = times(number(key));
	return checksum(hex(keccak(join(word(x), word(y))).slice(12)));
}

export const goodKey = key => key.length === 32 && number(key) > 0n && number(key) < n;

// sign is r, s and v of a digest, with the nonce that RFC 6979 makes of key and digest.
export function sign(key, digest) {
	let k = new Uint8Array(32), v = new Uint8Array(32).fill(1);
	for (const mark of [0, 1]) {
		k = hmac(k, join(v, [mark], key, word(number(digest) % n)));
		v = hmac(k, v);
	}
	for (;;) {
		v = hmac(k, v);
		const nonce = number(v);
		if (nonce > 0n && nonce < n) {
			const [x, y] = times(nonce), r = x % n;
			let s = mod(inverse(nonce, n) * (number(digest) + r * number(key)), n), odd = y & 1n;
			if (s > n / 2n) [s, odd] = [n - s, odd ^ 1n];
			if (r > 0n && s > 0n && x < n) return join(word(r), word(s), [Number(27n + odd)]);
		}
		k = hmac(k, join(v, [0]));
		v = hmac(k, v);
	}
}

// Typed data as EIP-712 has it, as far as flat structs need it.

const domainFields = [["name", "string"], ["version", "string"], ["chainId", "uint256"],
	["verifyingContract", "address"]];
export const orderFields = [["salt", "uint256"], ["maker", "address"], ["signer", "address"],
	["tokenId", "uint256"], ["makerAmount", "uint256"], ["takerAmount", "uint256"], ["side", "uint8"],
	["signatureType", "uint8"], ["timestamp", "uint256"], ["metadata", "bytes32"], ["builder", "bytes32"]];
export const authFields = [["address", "address"], ["timestamp", "string"], ["nonce", "uint256"],
	["message", "string"]];

function structHash(name, fields, value) {
	const type = `${name}(${fields.map(([field, kind]) => kind + " " + field).join(",")})`;
	return keccak(join(hashed(type), ...fields.map(([field, kind]) =>
		kind === "string" ? hashed(value[field]) : word(value[field]))));
}

// typed is what a wallet in the browser is asked to sign.
export function typed(name, fields, value, domain) {
	const own = domainFields.filter(([field]) => field in domain);
	const list = all => all.map(([name, type]) => ({ name, type }));
	return { primaryType: name, domain, message: value,
		types: { EIP712Domain: list(own), [name]: list(fields) } };
}

// digest is the hash that a signature of typed data signs; of an order, it is the order's id.
export function digest({ primaryType, types, domain, message }) {
	const fields = of => types[of].map(({ name, type }) => [name, type]);
	return keccak(join([0x19, 0x01], structHash("EIP712Domain", fields("EIP712Domain"), domain),
		structHash(primaryType, fields(primaryType), message)));
}
