// A client of the node that signs with the console's signer: for what the pages are to show.
import assert from "node:assert/strict";
import * as signer from "../../api/console/static/signer.js";

const zero = "0x" + "0".repeat(64);

export class Trader {
	constructor(url, key) {
		Object.assign(this, { url, key, address: signer.addressOf(key) });
	}

	async ask(path, headers, body, method = "POST") {
		const answer = await fetch(this.url + path, { method, headers, body });
		const told = await answer.json();
		assert.equal(answer.status, 200, `${path}: ${JSON.stringify(told)}`);
		return told;
	}

	sign(typed) { return signer.hex(signer.sign(this.key, signer.digest(typed))); }

	async derive() {
		this.node = await (await fetch(this.url + "/console/node.json")).json();
		const timestamp = String(Math.floor(Date.now() / 1000));
		const value = { address: this.address, timestamp, nonce: 0,
			message: "This message attests that I control the given wallet" };
		const domain = { name: "ClobAuthDomain", version: "1", chainId: this.node.chain };
		const signature = this.sign(signer.typed("ClobAuth", signer.authFields, value, domain));
		this.trio = await this.ask("/auth/api-key", { POLY_ADDRESS: this.address, POLY_NONCE: "0",
			POLY_TIMESTAMP: timestamp, POLY_SIGNATURE: signature });
		return this;
	}

	// place sends an order for shares at cents.
	async place(tokenId, side, cents, shares, orderType = "GTC") {
		const cost = String(cents * shares * 10_000), size = String(shares * 1_000_000);
		const [makerAmount, takerAmount] = side === "BUY" ? [cost, size] : [size, cost];
		const { name, version, contract } = this.node.exchanges.find(e => e.version === "2");
		const order = { salt: Math.floor(Math.random() * 2 ** 50), maker: this.address,
			signer: this.address, tokenId, makerAmount, takerAmount, side: side === "BUY" ? 0 : 1,
			signatureType: 0, timestamp: String(Date.now()), metadata: zero, builder: zero };
		const signature = this.sign(signer.typed("Order", signer.orderFields, order,
			{ name, version, chainId: this.node.chain, verifyingContract: contract }));
		const body = JSON.stringify({ order: { ...order, side, signature }, owner: this.trio.apiKey,
			orderType });
		return this.prove("POST", "/order", body);
	}

	// prove sends a request that the API key signs.
	async prove(method, path, body) {
		const timestamp = String(Math.floor(Date.now() / 1000));
		const { apiKey, passphrase, secret } = this.trio;
		const proven = timestamp + method + path + (body ?? "");
		return this.ask(path, { "Content-Type": "application/json", POLY_ADDRESS: this.address,
			POLY_API_KEY: apiKey, POLY_PASSPHRASE: passphrase, POLY_TIMESTAMP: timestamp,
			POLY_SIGNATURE: await signer.seal(secret, proven) }, body, method);
	}
}
