// The account that the page acts for, if any: its key, what it signs, and its orders as they live.
import { isAddress, micros } from "./dom.js";
import { about, ask, read, Refused } from "./node.js";
import { Stream } from "./stream.js";
import { addressOf, authFields, checksum, digest, goodKey, hex, orderFields, seal, sign, typed,
	unhex } from "./signer.js";

const zero = "0x" + "0".repeat(64), statement = "This message attests that I control the given wallet";
const kept = "console.account";

// account is null, or { address, trio, key } with a key of paper money, or { address, trio, wallet }
// with a wallet of the browser, or { address, trio }, which cannot sign orders but reads and cancels.
export let account = null;
export const orders = new Map(); // those that rest, by their id
export let fares = "closed"; // of the stream of the account
export let lack = ""; // why the orders could not be read: those that are kept may be old
const listeners = new Set();
let stream = null, skew = 0, loading = null, loaded = null, retold = [];

// watch calls heard("account" | "orders" | "trade" | "stream") until the function it returns is called.
export function watch(heard) {
	listeners.add(heard);
	return () => listeners.delete(heard);
}

const tell = what => listeners.forEach(heard => heard(what));
const now = () => Math.floor(Date.now() / 1000 + skew);

// store keeps a key of paper money for later visits, all else until the tab is closed.
function store(place, value) {
	try {
		if (value) place.setItem(kept, JSON.stringify(value));
		else place.removeItem(kept);
	} catch { /* a browser that keeps nothing: the account ends with the page */ }
}

function stored(place) {
	try {
		return JSON.parse(place.getItem(kept));
	} catch {
		return null;
	}
}

function enter(entered) {
	stream?.close();
	orders.clear();
	account = entered;
	lack = "";
	const { address, trio, key } = entered ?? {};
	store(localStorage, key && { key: hex(key) });
	store(sessionStorage, entered && !key && { address, trio, wallet: Boolean(entered.wallet) });
	stream = entered && new Stream("/ws/user", { hello, message: hear, state: (name, since, why) => {
		if (name === fares) return; // "late" is told again and again, with how late it is
		fares = name;
		if (name === "closed" && why) account.problem = why;
		if (name === "refused") {
			loading = null;
			account.problem = `The node refuses this key: ${why}. Forget it, or load the page to try again.`;
		}
		tell("stream");
	} });
	fares = entered ? fares : "closed";
	tell("account");
}

// restore goes on with what an earlier visit has left.
export async function restore() {
	const [key, rest] = [stored(localStorage)?.key, stored(sessionStorage)];
	try {
		if (key && (await about()).demo) await useKey(key);
		else if (rest?.trio) enter({ address: rest.address, trio: rest.trio, wallet: rest.wallet ? ethereum() : undefined });
	} catch { /* the reader makes it anew */ }
}

export const ethereum = () => globalThis.ethereum;
export const forget = () => enter(null);
export const maySign = () => Boolean(account?.key || account?.wallet);

// derive gets the API key of an address: of one that never had any, in the demo, with paper money.
async function derive(address, signed) {
	skew = await read("/time") - Date.now() / 1000;
	const { chain } = await about(), timestamp = String(now());
	const value = { address, timestamp, nonce: 0, message: statement };
	const signature = await signed(typed("ClobAuth", authFields, value,
		{ name: "ClobAuthDomain", version: "1", chainId: chain }));
	return (await ask("/auth/api-key", { method: "POST", headers: { POLY_ADDRESS: address,
		POLY_SIGNATURE: signature, POLY_TIMESTAMP: timestamp, POLY_NONCE: "0" } })).told;
}

const byKey = key => data => hex(sign(key, digest(data)));
const byWallet = (wallet, address) => data => wallet.request({ method: "eth_signTypedData_v4",
	params: [address, JSON.stringify(data)] });

export async function useKey(text) {
	const key = unhex(text.trim());
	if (!goodKey(key)) throw new Error("a private key is 0x and 64 hex digits");
	const address = addressOf(key);
	enter({ address, key, trio: await derive(address, byKey(key)) });
}

export const makeKey = () => useKey(hex(crypto.getRandomValues(new Uint8Array(32))));

export async function useWallet() {
	const wallet = ethereum(), [first] = await wallet.request({ method: "eth_requestAccounts" });
	const address = checksum(first), { chain } = await about();
	const id = "0x" + chain.toString(16);
	if (await wallet.request({ method: "eth_chainId" }) !== id) {
		await wallet.request({ method: "wallet_switchEthereumChain", params: [{ chainId: id }] });
	}
	enter({ address, wallet, trio: await derive(address, byWallet(wallet, address)) });
}

// usePasted takes an API key as it is, if the node knows it.
export async function usePasted(address, trio) {
	if (!isAddress(address)) throw new Error("an address is 0x and 40 hex digits");
	skew = await read("/time") - Date.now() / 1000;
	const entered = { address: checksum(address), trio };
	await signed("GET", "/auth/api-keys", undefined, {}, entered);
	enter(entered);
}

async function signed(method, path, body, more = {}, by = account) {
	const timestamp = String(now()), [unasked] = path.split("?");
	return ask(path, { method, body, headers: { "Content-Type": "application/json", POLY_ADDRESS: by.address,
		POLY_API_KEY: by.trio.apiKey, POLY_PASSPHRASE: by.trio.passphrase, POLY_TIMESTAMP: timestamp,
		POLY_SIGNATURE: await seal(by.trio.secret, timestamp + method + unasked + (body ?? "")), ...more } });
}

async function hello() {
	const timestamp = String(now()), { trio } = account;
	return { type: "user", heartbeat: true, auth: { apiKey: trio.apiKey, passphrase: trio.passphrase, timestamp,
		signature: await seal(trio.secret, timestamp + "GET/ws/user") } };
}

// hear takes a message of the user channel. The first one is a heartbeat: what was before is asked for
// over HTTP, and what is said meanwhile counts once more after that.
function hear(m) {
	if (m.event_type === "error") {
		account.problem = m.message;
		return;
	}
	if (m.sequence === 1) load();
	if (m.event_type === "order") {
		if (loading) retold.push(m);
		keep(m);
		tell("orders");
	} else if (m.event_type === "trade") {
		tell("trade");
	}
}

function keep(order) {
	if (order.status === "LIVE") orders.set(order.id, order);
	else orders.delete(order.id);
}

// load reads the orders. If that fails, those that are known stay, and it is tried again.
async function load() {
	const mine = loading = {}, of = account, found = [];
	retold = [];
	let failed = "";
	try {
		for (let cursor = "MA=="; cursor && cursor !== "LTE=" && found.length < 2000;) {
			const page = (await signed("GET", "/data/orders?next_cursor=" + encodeURIComponent(cursor))).told;
			found.push(...page.data);
			cursor = page.next_cursor;
		}
	} catch (error) {
		failed = error.message || "the orders cannot be read";
	}
	if (mine !== loading || of !== account) return;
	lack = failed;
	if (failed) setTimeout(() => mine === loading && of === account && load(), 3000);
	else {
		loading = null;
		orders.clear();
		[...found, ...retold].forEach(keep);
		if (loaded === of) tell("trade"); // there may have been some while the stream was away
		loaded = of;
	}
	tell("orders");
}

// balance is what the account holds of collateral, or of a token, in millionths; what is behind its
// orders included.
export async function balance(token) {
	const what = token ? "CONDITIONAL&token_id=" + token : "COLLATERAL";
	return BigInt((await signed("GET", "/balance-allowance?signature_type=0&asset_type=" + what)).told.balance);
}

// amounts are what an order gives and gets, in millionths, exactly.
export function amounts(side, price, size) {
	const cost = price * size / 1_000_000n;
	return side === "BUY" ? [cost, size] : [size, cost];
}

// place signs and sends an order: { token, side, price, size, type, postOnly, negRisk }, with price and
// size in millionths. It returns the node's result, the fee, and what the node spent in each stage.
export async function place(wish) {
	const { chain, exchanges } = await about();
	const fits = exchanges.find(e => e.version === "2" && (e.markets === "all" ||
		e.markets === (wish.negRisk ? "neg-risk" : "normal")));
	if (!fits) throw new Error("the node takes no orders of version 2");
	const [maker, taker] = amounts(wish.side, wish.price, wish.size);
	const salt = crypto.getRandomValues(new Uint32Array(2));
	const order = { salt: (salt[0] & 0xfffff) * 2 ** 32 + salt[1], maker: account.address, signer: account.address,
		tokenId: wish.token, makerAmount: String(maker), takerAmount: String(taker), side: wish.side === "BUY" ? 0 : 1,
		signatureType: 0, timestamp: String(Math.floor(Date.now() + skew * 1000)), metadata: zero, builder: zero };
	const domain = { name: fits.name, version: fits.version, chainId: chain, verifyingContract: fits.contract };
	const data = typed("Order", orderFields, order, domain);
	const signature = await (account.key ? byKey(account.key) : byWallet(account.wallet, account.address))(data);
	const began = performance.now();
	const answer = await signed("POST", "/order", JSON.stringify({ deferExec: false, postOnly: wish.postOnly,
		order: { ...order, side: wish.side, expiration: "0", signature }, owner: account.trio.apiKey,
		orderType: wish.type }), { "X-Debug-Stages": "1" });
	if (!answer.told.success) throw new Refused(200, { error: answer.told.errorMsg, detail: answer.told.detail });
	const stages = (answer.header("X-Debug-Stages") ?? "").split(", ").filter(Boolean).map(s => s.split("="));
	return { ...answer.told, fee: micros(answer.told.fee ?? answer.header("X-Fee") ?? "0"), stages,
		waited: performance.now() - began };
}

// cancel takes an order out of the book, or throws the node's reason.
export async function cancel(id) {
	const { told } = await signed("DELETE", "/order", JSON.stringify({ orderID: id }));
	if (!told.canceled.includes(id)) throw new Error(told.not_canceled[id] ?? "not canceled");
	orders.delete(id);
	tell("orders");
}
