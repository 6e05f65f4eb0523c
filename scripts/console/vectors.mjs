// vectors.mjs FOLDER: holds the console's signer to what public clients signed, byte for byte: keys,
// orders and HMACs, and its hashes to those of node itself.
import assert from "node:assert/strict";
import crypto from "node:crypto";
import fs from "node:fs";
import * as signer from "../../api/console/static/signer.js";

const folder = process.argv[2];
const read = name => JSON.parse(fs.readFileSync(`${folder}/${name}.json`, "utf8"));
const count = {};
const done = what => { count[what] = (count[what] ?? 0) + 1; };

for (let n = 0; n < 300; n++) {
	const bytes = new Uint8Array(crypto.randomBytes(n));
	assert.equal(signer.hex(signer.sha256(bytes)),
		"0x" + crypto.createHash("sha256").update(bytes).digest("hex"));
	done("SHA-256");
}

for (const v of read("clob_auth")) {
	const key = signer.unhex(v.privateKey);
	assert.equal(signer.addressOf(key), v.address, v.id);
	const value = { address: v.address, timestamp: v.timestamp, nonce: v.nonce, message: v.message };
	const digest = signer.digest(signer.typed("ClobAuth", signer.authFields, value, v.domain));
	assert.equal(signer.hex(digest), v.digest, v.id);
	assert.equal(signer.hex(signer.sign(key, digest)), v.signature, v.id);
	done("ClobAuth");
}

for (const name of ["orders_polymarket_v2", "orders_polymarket_v3", "orders_kuest_v2"]) {
	for (const v of read(name)) {
		const order = { ...v.order, side: v.order.side === "BUY" ? 0 : 1 };
		const digest = signer.digest(signer.typed("Order", signer.orderFields, order, v.domain));
		assert.equal(signer.hex(digest), v.orderHash, v.id);
		done("ids of orders");
		if (v.signedDigest !== v.orderHash || v.signature.length !== 132) continue;
		assert.equal(signer.hex(signer.sign(signer.unhex(v.privateKey), digest)), v.signature, v.id);
		done("signatures of orders");
	}
}

for (const v of read("hmac")) {
	const text = v.timestamp + v.method + v.path + (v.body ?? "");
	assert.equal(await signer.seal(v.secret, text), v.signature, v.id);
	assert.equal(await signer.seal(v.secret, text, null), v.signature, v.id + " without WebCrypto");
	done("HMAC, both ways");
}

console.log(Object.entries(count).map(([what, n]) => `${n} ${what}`).join(", "));
