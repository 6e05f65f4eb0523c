// What a wallet holds and did: of anybody, as all of that is public, but for open orders.
import { account, watch } from "./account.js";
import { grouped, isAddress, make, marketLink, money, nothing, price, say, size, table, walletLink, when } from "./dom.js";
import { about, read } from "./node.js";
import { keyPanel, ownOrders } from "./trade.js";

export function open(main, address, tell) {
	const view = new View(main, address, tell);
	view.begin();
	return () => view.close();
}

const gain = v => make("span", { class: v > 0 ? "up" : v < 0 ? "down" : null }, (v > 0 ? "+" : "") + money(v));
const percent = v => Number.isFinite(v) ? `${v > 0 ? "+" : v < 0 ? "−" : ""}${Math.abs(v).toFixed(1)} %` : nothing;
const market = p => make("a", { href: marketLink(p.conditionId) }, p.title || p.slug || p.conditionId);

// some asks for a list page by page, at most so many; more says that there may be further ones.
async function some(path, wish, pages) {
	const found = [];
	for (let n = 1; n <= pages; n++) {
		const told = await read(path, { ...wish, offset: found.length });
		found.push(...told);
		if (told.length < wish.limit) return found;
	}
	found.more = true;
	return found;
}

class View {
	constructor(main, address, tell) {
		Object.assign(this, { main, address, tell, parts: [], closed: false });
	}

	async begin() {
		const node = await about().catch(() => ({ demo: false }));
		if (this.closed) return;
		const key = keyPanel(node), own = ownOrders();
		this.parts = [key, own];
		const problem = make("p", { class: "problem", role: "alert" });
		const form = make("form", { class: "filters", onsubmit: event => {
			event.preventDefault();
			const given = event.currentTarget.elements.address.value.trim();
			if (isAddress(given)) location.hash = walletLink(given);
			else say(problem, "An address is 0x and 40 hex digits.");
		} }, make("label", { class: "wide" }, "Address of a wallet", make("input", { name: "address", value: this.address ?? "",
			placeholder: "0x…", autocomplete: "off", spellcheck: "false" })), make("button", {}, "Show"), problem);
		this.shown = make("div", {});
		this.main.replaceChildren(make("h1", { tabindex: "-1" }, "Wallet"), form, make("div", { class: "columns" },
			make("div", {}, own.box, this.shown), make("div", { class: "side" }, key.box)));
		this.tell.title("Wallet");
		// Without an address the page shows the wallet of the account.
		this.unwatch = watch(what => {
			if (what === "account") this.load();
			if (what === "trade" && this.of() === account?.address) this.soon();
		});
		this.load();
		this.timer = setInterval(() => document.hidden || this.load(), 15_000);
	}

	of() { return this.address ?? account?.address; }

	soon() {
		clearTimeout(this.later);
		this.later = setTimeout(() => this.load(), 300);
	}

	async load() {
		const user = this.of();
		this.parts[1].box.hidden = !account || user !== account.address;
		if (!user) {
			this.shown.replaceChildren(make("section", { class: "card" }, make("p", { class: "dim" },
				"Give the address of any wallet, or make a key of your own, to see what it holds.")));
			return;
		}
		try {
			const [positions, closedOnes, trades, value, traded] = await Promise.all([
				some("/positions", { user, limit: 200, sizeThreshold: 0, sortBy: "CURRENT" }, 3),
				some("/closed-positions", { user, limit: 50, sortBy: "TIMESTAMP" }, 6),
				read("/trades", { user, limit: 50, takerOnly: false }),
				read("/value", { user }), read("/traded", { user })]);
			if (!this.closed && user === this.of()) this.show(user, { positions, closedOnes, trades, value, traded });
		} catch (error) {
			if (!this.closed) this.shown.replaceChildren(make("p", { class: "card problem", role: "alert" }, error.message));
		}
	}

	show(user, { positions, closedOnes, trades, value, traded }) {
		const profile = trades.find(t => t.proxyWallet.toLowerCase() === user.toLowerCase());
		const sum = (all, name) => all.reduce((total, p) => total + p[name], 0);
		const name = profile?.name || profile?.pseudonym;
		const tile = (label, figure, part) => make("div", { class: "tile" }, make("h3", {}, label), make("p", {}, figure),
			part ? make("small", {}, part) : null);
		const first = positions.more && `of the first ${positions.length}`;
		const parts = [closedOnes.more && `of the latest ${closedOnes.length} closed`, positions.more &&
			`of the first ${positions.length} open`].filter(Boolean).join(", ");
		const card = (label, heads, rows, none) => make("section", { class: "card", "aria-label": label }, make("h2", {}, label),
			rows.length ? make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
				table(label, heads, rows, "stack")) : make("p", { class: "dim" }, none));
		// What the reader has scrolled and focused stays.
		const scrolled = [...this.shown.querySelectorAll(".scroll")].map(e => [e.getAttribute("aria-label"), e.scrollTop]);
		const focused = this.shown.contains(document.activeElement) && document.activeElement.getAttribute("href");
		this.shown.replaceChildren(
			make("p", { class: "who" }, name ? make("strong", {}, name) : null, name ? " " : null, make("code", {}, user),
				profile?.bio ? make("small", {}, profile.bio) : null),
			make("div", { class: "tiles" }, tile("Positions are worth", money(value[0]?.value ?? 0)),
				tile("Profit on them", gain(sum(positions, "cashPnl")), first),
				tile("Profit taken", gain(sum(positions, "realizedPnl") + sum(closedOnes, "realizedPnl")), parts),
				tile("Markets traded", String(traded.traded ?? nothing))),
			card("Positions", ["Market", "Outcome", "#Shares", "#Paid", "#Now", "#Value", "#Profit"], positions.map(p =>
				[market(p), p.outcome, size(p.size), price(p.avgPrice), price(p.curPrice), money(p.currentValue),
					make("span", {}, gain(p.cashPnl), make("small", {}, percent(p.percentPnl)))]), "It holds nothing."),
			user === account?.address ? "" : make("section", { class: "card", "aria-label": "Open orders" }, make("h2", {}, "Open orders"),
				make("p", { class: "dim" }, "The node shows open orders to their owner only: with a key of this wallet they are here, live.")),
			card("Trades", ["Market", "Side", "#Price", "#Shares", "#Value", "#Time"], trades.map(t =>
				[market(t), make("span", { class: t.side === "BUY" ? "up" : "down" }, `${t.side === "BUY" ? "Buy" : "Sell"} ${t.outcome}`),
					price(t.price), size(t.size), money(t.usdcSize), when(t.timestamp)]), "It has not traded yet."),
			card("Closed positions", ["Market", "Outcome", "#Bought", "#Paid", "#Profit", "#Closed"], closedOnes.map(p =>
				[market(p), p.outcome, grouped(String(p.totalBought)), price(p.avgPrice), gain(p.realizedPnl), when(p.timestamp)]),
			"None yet."));
		for (const [label, top] of scrolled) {
			const again = [...this.shown.querySelectorAll(".scroll")].find(e => e.getAttribute("aria-label") === label);
			if (again) again.scrollTop = top;
		}
		if (focused) this.shown.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
	}

	close() {
		this.closed = true;
		clearInterval(this.timer);
		clearTimeout(this.later);
		this.unwatch?.();
		this.parts.forEach(part => part.close());
	}
}
