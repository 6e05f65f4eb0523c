// vectors.mjs FOLDER: holds the console's signer to what public clients signed, byte for byte:
// keys, orders and HMACs in the JSON files of a folder, each known by its shape. Its SHA-256 is
// held to that of the machine.
import assert from "node:assert/strict";
import crypto from "node:crypto";
import fs from "node:fs";
import * as signer from "../../api/console/static/signer.js";

const folder = process.argv[2], count = {};
const done = what => { count[what] = (count[what] ?? 0) + 1; };
const auth = v => signer.digest(signer.typed("ClobAuth", signer.authFields,
	{ address: v.address, timestamp: v.timestamp, nonce: v.nonce, message: v.message },
	{ name: "ClobAuthDomain", version: "1", chainId: v.chainId }));
const order = v => signer.digest(signer.typed("Order", signer.orderFields,
	{ ...v.order, side: v.order.side === "BUY" ? 0 : 1 }, v.domain));

async function check(v) {
	if (v.valid === false) return;
	const key = v.privateKey && signer.unhex(v.privateKey);
	if (v.secret && v.path) {
		const text = v.timestamp + v.method + v.path + (v.body ?? "");
		assert.equal(await signer.seal(v.secret, text), v.signature, v.id);
		assert.equal(await signer.seal(v.secret, text, null), v.signature, v.id + " without WebCrypto");
		done("HMACs in both ways");
	} else if (v.message && v.nonce !== undefined) {
		assert.equal(signer.addressOf(key), v.address, v.id);
		assert.equal(signer.hex(auth(v)), v.digest, v.id);
		assert.equal(signer.hex(signer.sign(key, auth(v))), v.signature, v.id);
		done("logins");
	} else if (v.order?.metadata && v.orderHash && v.domain) {
		assert.equal(signer.hex(order(v)), v.orderHash, v.id);
		done("ids of orders");
		if (!key || v.signature.length !== 132 || (v.signedDigest ?? v.orderHash) !== v.orderHash) return;
		assert.equal(signer.hex(signer.sign(key, order(v))), v.signature, v.id);
		done("signatures of orders");
	}
}

for (let n = 0; n < 300; n++) {
	const bytes = new Uint8Array(crypto.randomBytes(n));
	assert.equal(signer.hex(signer.sha256(bytes)),
		"0x" + crypto.createHash("sha256").update(bytes).digest("hex"));
	done("hashes");
}
for (const name of fs.readdirSync(folder).filter(name => name.endsWith(".json"))) {
	const all = JSON.parse(fs.readFileSync(`${folder}/${name}`, "utf8"));
	for (const v of Array.isArray(all) ? all : []) await check(v);
}
assert.ok(count["signatures of orders"] >= 5, `too few signatures: ${JSON.stringify(count)}`);
console.log(Object.entries(count).map(([what, n]) => `${n} ${what}`).join(", "));
