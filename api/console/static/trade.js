// Whoever trades: how the page gets a key, the ticket for an order, and the table of what rests.
import { account, amounts, balance, cancel, ethereum, fares, forget, lack, makeKey, maySign, orders, place,
	useKey, usePasted, useWallet, watch } from "./account.js";
import { $, decimal, grouped, make, marketLink, micros, money, nothing, price, say, shorten, table,
	walletLink, when } from "./dom.js";

// attempt runs what a button starts, and shows how that failed. The button is off meanwhile.
async function attempt(button, problem, work) {
	button.disabled = true;
	say(problem, "");
	try {
		await work();
	} catch (error) {
		say(problem, error.message);
	} finally {
		button.disabled = false;
	}
}

function field(name, label, properties = {}) {
	return make("label", {}, label, make("input", { name, required: true, autocomplete: "off", spellcheck: "false",
		...properties }));
}

// keyPanel is where the reader gets an account, or sees the one there is. It stays right by itself;
// the returned close ends that.
export function keyPanel(node) {
	const box = make("section", { class: "card key", "aria-label": "Your account" });
	const show = () => box.replaceChildren(...(account ? held() : wanted(node)));
	const close = watch(what => {
		if (what === "account") show();
		if (what === "stream" && account) show();
		if ((what === "account" || what === "trade") && account) refresh();
	});
	show();
	if (account) refresh();
	return { box, close };
}

// holds is what the account held when it was last asked for, so that the panel can be made anew.
let holds = { of: null, text: nothing, none: false };

async function refresh() {
	const of = account?.address;
	try {
		const held = await balance();
		holds = { of, text: money(Number(held) / 1e6), none: held === 0n };
	} catch {
		holds = { of, text: nothing, none: false };
	}
	const place = $("balance");
	if (!place || of !== account?.address) return;
	say(place, holds.text);
	$("broke").hidden = !holds.none;
}

function held() {
	const streams = { live: "live", late: "lagging", resync: "live", opening: "connecting" }[fares] ?? "not connected";
	return [make("h2", {}, "Your account"),
		make("dl", { class: "facts" },
			make("dt", {}, "Address"), make("dd", {}, make("a", { href: walletLink(account.address), title: account.address },
				shorten(account.address))),
			make("dt", {}, account.key ? "Paper money" : "Collateral"), make("dd", { id: "balance" },
				holds.of === account.address ? holds.text : nothing),
			make("dt", {}, "Own orders"), make("dd", { id: "own-stream" }, streams)),
		make("p", { class: "dim", id: "broke", hidden: holds.of !== account.address || !holds.none }, account.key ?
			"There is no paper money here: it is spent, or this node's faucet had none for a new key." :
			"There is no collateral here: orders to buy will be refused."),
		account.problem && (fares === "closed" || fares === "refused") ? make("p", { class: "problem", role: "alert" }, account.problem) : null,
		make("button", { type: "button", class: "quiet", onclick: forget }, "Forget this key")].filter(Boolean);
}

function wanted(node) {
	const problem = make("p", { class: "problem", role: "alert" });
	const press = (name, text, work) => make("button", { type: "button", class: name,
		onclick: event => attempt(event.currentTarget, problem, work) }, text);
	const form = (summary, hint, fields, text, work) => make("details", {}, make("summary", {}, summary),
		make("form", { onsubmit: event => {
			event.preventDefault();
			const given = Object.fromEntries(new FormData(event.currentTarget));
			attempt(event.submitter, problem, () => work(given));
		} }, make("p", { class: "dim" }, hint), ...fields, make("button", {}, text)));
	return [make("h2", {}, "Your account"),
		make("p", { class: "dim" }, node.demo ? "This node is a demo: a new key gets paper money. It is kept in this browser, where " +
			"other pages of this address could read it: use it for nothing else." : ethereum() ? "Orders are signed by the wallet in your browser." :
			"This node is no demo, and there is no wallet in this browser: with an API key you can watch and cancel your orders."),
		node.demo ? press("primary", "Make a key with paper money", makeKey) : null,
		ethereum() ? press(node.demo ? "" : "primary", "Use the wallet in this browser", useWallet) : null,
		node.demo ? form("Paste a private key", "For paper money only.",
			[field("key", "Private key", { type: "password", placeholder: "0x…" })], "Use this key", given => useKey(given.key)) : null,
		form("Paste an API key", "It is kept until this tab is closed. It cannot sign orders.",
			[field("address", "Address", { placeholder: "0x…" }), field("apiKey", "API key"),
				field("secret", "Secret", { type: "password" }), field("passphrase", "Passphrase", { type: "password" })],
			"Use this API key", ({ address, ...trio }) => usePasted(address, trio)),
		problem].filter(Boolean);
}

// ownOrders is the table of resting orders, of one market or of all; live.
export function ownOrders(market) {
	const heads = ["Side", "Outcome", "#Price", "#Filled", ...(market ? [] : ["#Since"]), "#"];
	const list = table("Your open orders", heads, [], "stack"), body = list.tBodies[0], rows = new Map();
	const none = make("p", { class: "dim" }, "None."), problem = make("p", { class: "problem", role: "alert" });
	const box = make("section", { class: "card", "aria-label": "Your open orders" }, make("h2", {}, "Your open orders"), problem, list, none);
	const row = o => {
		const failed = make("small", { class: "problem", role: "alert" });
		const button = make("button", { type: "button", class: "quiet", "data-order": o.id,
			"aria-label": `Cancel ${o.side} ${o.original_size} ${o.outcome} at ${price(o.price)}`,
			onclick: () => attempt(button, failed, () => cancel(o.id)) }, "Cancel");
		return table("", heads, [[make("span", { class: o.side === "BUY" ? "up" : "down" }, o.side === "BUY" ? "Buy" : "Sell"),
			market ? o.outcome : make("a", { href: marketLink(o.market) }, o.outcome), price(o.price), nothing,
			...(market ? [] : [when(Number(o.created_at))]), make("span", {}, button, failed)]]).tBodies[0].rows[0];
	};
	const show = () => {
		const focused = box.contains(document.activeElement);
		const mine = [...orders.values()].filter(o => !market || o.market === market)
			.sort((a, b) => Number(b.created_at) - Number(a.created_at)), ids = new Set(mine.map(o => o.id));
		box.hidden = !account;
		for (const [id, gone] of rows) {
			if (ids.has(id)) continue;
			gone.remove();
			rows.delete(id);
		}
		// Rows that stay are not touched: a click that has begun on one would be lost.
		mine.forEach((o, i) => {
			if (!rows.has(o.id)) rows.set(o.id, row(o));
			const is = rows.get(o.id);
			if (body.rows[i] !== is) body.insertBefore(is, body.rows[i] ?? null);
			say(is.cells[3], grouped(o.size_matched) + " / " + grouped(o.original_size));
		});
		list.hidden = !mine.length;
		none.hidden = mine.length > 0 || Boolean(lack);
		say(problem, lack ? "Your orders could not be read: " + lack : "");
		if (focused && !box.contains(document.activeElement)) box.querySelector("button")?.focus();
	};
	show();
	return { box, close: watch(what => (what === "orders" || what === "account") && show()) };
}

const kinds = [["GTC", "rests until cancelled"], ["FAK", "now, the rest is dropped"],
	["FOK", "all of it now, or nothing"]];

// Ticket places orders in a market: { condition, outcomes, tick, minimum, negRisk, fee }.
export class Ticket {
	constructor(market) {
		this.market = market;
		this.problem = make("p", { class: "problem", role: "alert" });
		this.result = make("div", { class: "result", role: "status" });
		this.worth = make("p", { class: "dim worth" });
		const radio = (name, value, text, checked) => make("label", { class: "choice " + value.toLowerCase() },
			make("input", { type: "radio", name, value, checked }), make("span", {}, text));
		this.button = make("button", { class: "primary" }, "Place order");
		this.form = make("form", { id: "ticket", novalidate: true, oninput: () => this.reckon(),
			onsubmit: event => {
				event.preventDefault();
				attempt(this.button, this.problem, () => this.send());
			} },
			make("fieldset", {}, make("legend", {}, "Side"), radio("side", "BUY", "Buy", true), radio("side", "SELL", "Sell")),
			make("fieldset", {}, make("legend", {}, "Outcome"),
				...market.outcomes.map((o, i) => radio("outcome", String(i), o.name, i === 0))),
			make("div", { class: "pair" },
				field("price", "Price in cents", { inputmode: "decimal", placeholder: "50" }),
				field("size", "Shares", { inputmode: "decimal", value: String(Math.max(10, market.minimum)) })),
			make("label", {}, "Kind", make("select", { name: "type" },
				...kinds.map(([value, text]) => make("option", { value }, `${value}: ${text}`)))),
			make("label", { class: "check" }, make("input", { type: "checkbox", name: "postOnly" }),
				"Post only: refuse it rather than trade at once"),
			this.worth, this.button, this.problem, this.result);
		this.box = make("section", { class: "card", "aria-label": "Trade" }, make("h2", {}, "Trade"), this.form);
		this.close = watch(what => what === "account" && this.show());
		this.show();
	}

	show() {
		this.box.hidden = !maySign();
		this.reckon();
	}

	// pick fills in a price of a ladder: what is offered is bought, what is wanted is sold.
	pick(outcome, at, side) {
		const { elements } = this.form;
		elements.outcome.value = String(outcome);
		elements.side.value = side === "asks" ? "BUY" : "SELL";
		elements.price.value = decimal(micros(at) * 100n);
		this.reckon();
	}

	// wish is what the form says, or throws what is wrong with it.
	wish() {
		const given = Object.fromEntries(new FormData(this.form)), cents = micros(given.price), size = micros(given.size);
		const tick = micros(this.market.tick);
		if (cents === null || cents % 100n) throw new Error("The price is a number of cents.");
		const at = cents / 100n;
		if (tick && at % tick || at <= 0n || at >= 1_000_000n) {
			throw new Error(`The price is a multiple of ${price(this.market.tick)} between 0 and 100.`);
		}
		if (size === null || size <= 0n || size % 10_000n) throw new Error("The size is a number of shares, to the hundredth.");
		return { token: this.market.outcomes[Number(given.outcome)].id, side: given.side, price: at, size, type: given.type,
			postOnly: given.postOnly === "on", negRisk: this.market.negRisk };
	}

	reckon() {
		try {
			const w = this.wish(), [gives, gets] = amounts(w.side, w.price, w.size);
			const spends = w.side === "BUY" && w.type !== "GTC"; // then the money is the bound, not the shares
			say(this.worth, spends ? `Spends up to ${dollars(gives)}: at better prices that is more than ${decimal(w.size)} shares.` :
				w.side === "BUY" ?
				`Costs at most ${dollars(gives)}${this.market.fee ? " and the fee" : ""}, pays ${dollars(gets)} if it comes true.` :
				`Brings at least ${dollars(gets)}${this.market.fee ? " less the fee" : ""}.`);
		} catch {
			say(this.worth, "Give a price and a size.");
		}
	}

	async send() {
		this.result.replaceChildren();
		const wish = this.wish(), r = await place(wish);
		const [got, given] = [micros(r.takingAmount || "0"), micros(r.makingAmount || "0")];
		const [shares, cash] = wish.side === "BUY" ? [got, given] : [given, got];
		const spent = r.stages.reduce((sum, [, us]) => sum + Number(us), 0);
		const status = { live: "Live: it rests in the book", matched: "Matched", unmatched: "Not matched" }[r.status] ?? r.status;
		const facts = [["Status", status], ["Filled", shares ? grouped(decimal(shares)) +
			(shares < wish.size ? " of " + grouped(decimal(wish.size)) : "") + ` shares for ${dollars(cash)}` : "nothing yet"], ["Fee", dollars(r.fee ?? 0n)],
		["Order", make("code", { title: r.orderID, "data-id": r.orderID }, shorten(r.orderID))],
		["Node", r.stages.length ? `${spent.toLocaleString("en")} µs` : nothing],
		["Here and back", `${r.waited.toFixed(1)} ms`]];
		this.result.replaceChildren(make("dl", { class: "facts" },
			...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", { "data-fact": name }, value)])),
			...(r.stages.length ? [make("details", {}, make("summary", {}, "Microseconds by stage"),
				make("ul", { class: "stages" }, ...r.stages.filter(([, us]) => us !== "0")
					.map(([name, us]) => make("li", {}, `${name} ${us}`))))] : []));
		refresh();
	}
}

// dollars writes an amount exactly, with cents.
const dollars = v => {
	const [whole, part = ""] = grouped(decimal(v)).split(".");
	return `$${whole}.${part.padEnd(2, "0")}`;
};
