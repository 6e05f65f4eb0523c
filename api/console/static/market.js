// One market: both books, how deep they are, where the price was, what was traded, and the rules.
import { ownOrders, keyPanel, Ticket } from "./trade.js";
import { Book, Ladder } from "./book.js";
import { Depth, History } from "./charts.js";
import { brief, clock, date, grouped, isCondition, make, nothing, price, say, shorten, table, walletLink } from "./dom.js";
import { about, read, tokensOf } from "./node.js";
import { Stream } from "./stream.js";

const hour = 3600;
const windows = [["1h", "1 h", hour, 1], ["6h", "6 h", 6 * hour, 1], ["1d", "1 d", 24 * hour, 5], ["1w", "1 w", 7 * 24 * hour, 30],
	["all", "All", 0, 180]];
const shownTrades = 60;

// open shows the market of a condition, or of an id of the catalog.
export function open(main, id, tell) {
	const view = new View(main, tell);
	view.load(id);
	return () => view.close();
}

class View {
	constructor(main, tell) {
		Object.assign(this, { main, tell, closed: false, parts: [], trades: [], early: [] });
		main.replaceChildren(make("p", { class: "loading" }, "Asking for the market…"));
		tell.title("Market");
	}

	// load asks for the market, and at the same time for its books.
	async load(id) {
		if (isCondition(id)) this.follow({ markets: [id] });
		try {
			const [node, m] = await Promise.all([about(), read("/markets/" + encodeURIComponent(id))]);
			if (!this.closed) this.show(node, m);
		} catch (error) {
			if (this.closed) return;
			this.stop();
			this.main.replaceChildren(make("h1", { tabindex: "-1" }, "No such market"), make("p", { class: "card" }, error.message));
			this.tell.title("No such market");
		}
	}

	// stop follows nothing any longer, and the frame says nothing of it.
	stop() {
		this.stream?.close();
		this.tell.still();
	}

	show(node, m) {
		const question = m.question || m.slug || m.conditionId;
		Object.assign(this, { m, condition: m.conditionId, outcomes: tokensOf(m) });
		this.tell.title(question);
		const event = m.events?.[0]?.title ?? m.event?.title;
		const head = make("div", { class: "head" }, event && event !== question ? make("p", { class: "dim event" }, event) : null,
			make("h1", { tabindex: "-1" }, question), this.lead = make("p", { class: "lead" }));
		if (!this.outcomes || m.enableOrderBook === false) {
			this.stop();
			this.main.replaceChildren(head, make("p", { class: "card" }, "This market has no two outcomes with a book here."), this.rules());
			return;
		}
		this.books = this.outcomes.map(o => new Book(o.id));
		this.ladders = this.books.map((book, i) => new Ladder(book, this.outcomes[i].name,
			(at, side) => this.ticket?.pick(i, at, side)));
		this.depth = new Depth("Depth");
		this.history = new History("Price");
		const tradable = node.demo || globalThis.ethereum;
		const key = keyPanel(node), own = ownOrders(this.condition);
		this.ticket = tradable ? new Ticket({ condition: this.condition, outcomes: this.outcomes, ...terms(m) }) : null;
		this.parts = [key, own, this.ticket].filter(Boolean);
		this.main.replaceChildren(head, make("div", { class: "columns" }, this.bookCard(),
			make("div", { class: "side" }, this.ticket?.box, own.box, key.box),
			make("div", { class: "rest" }, this.pictures(), this.tape(), this.rules())));
		this.paint();
		if (!this.stream) this.follow({ assets_ids: this.outcomes.map(o => o.id) });
		this.early.splice(0).forEach(m => this.hear(m));
		this.choose(windows[0]);
		this.loadTape();
		this.timer = setInterval(() => document.hidden || this.reload(), 15_000);
	}

	// pick says which outcome the pictures show.
	pictures() {
		this.shown = 0;
		const outcome = make("div", { class: "switch", role: "group", "aria-label": "Outcome of the pictures" },
			...this.outcomes.map((o, i) => make("button", { type: "button", "aria-pressed": String(i === 0),
				onclick: event => {
					this.shown = i;
					press(outcome, event.currentTarget);
					this.dirty = true;
					this.paint();
					this.choose(this.window);
				} }, o.name)));
		const span = make("div", { class: "switch", role: "group", "aria-label": "Time of the price history" },
			...windows.map(w => make("button", { type: "button", "aria-pressed": String(w === windows[0]), onclick: event => {
				press(span, event.currentTarget);
				this.choose(w);
			} }, w[1])));
		return make("section", { class: "card", "aria-label": "Price and depth" },
			make("div", { class: "title" }, make("h2", {}, "Price"), outcome, span), this.history.box,
			make("h2", {}, "Depth"), this.depth.box);
	}

	bookCard() {
		const all = make("button", { type: "button", class: "quiet", "aria-pressed": "false", onclick: () => {
			const on = all.getAttribute("aria-pressed") !== "true";
			all.setAttribute("aria-pressed", String(on));
			this.ladders.forEach(l => { l.all = on; });
			this.dirty = true;
			this.paint();
		} }, "All levels");
		this.seq = make("span", { class: "dim", id: "book-seq" });
		return make("section", { class: "card", id: "books", "aria-label": "Books" },
			make("div", { class: "title" }, make("h2", {}, "Order book"), this.seq, all),
			make("div", { class: "ladders" }, ...this.ladders.map(l => l.table)));
	}

	follow(what) {
		this.stream = new Stream("/ws/market", {
			state: this.tell.state, message: m => this.hear(m),
			hello: seq => ({ type: "market", ...what, heartbeat: true, conflate: true,
				...(seq ? { resume: { seq } } : {}) }),
		});
	}

	hear(m) {
		if (!this.books) return this.early.push(m);
		const book = this.books.find(b => b.token === m.asset_id);
		if (m.event_type === "book") book?.fill(m);
		else if (m.event_type === "price_change") {
			for (const c of m.price_changes) this.books.find(b => b.token === c.asset_id)?.change(c);
			if (!this.books.every(b => b.agrees())) return this.stream.again();
		} else if (m.event_type === "last_trade_price" && m.asset_id === this.outcomes[0].id) this.traded(m);
		else if (m.event_type === "tick_size_change") this.reload();
		this.now = m.seq;
		this.tell.seq(m.seq);
		this.dirty ||= m.event_type !== "heartbeat";
		// Many changes of one moment are painted once.
		this.frame ??= requestAnimationFrame(() => {
			this.frame = null;
			if (!this.closed) this.paint();
		});
	}

	paint() {
		say(this.seq, this.now ? `seq ${this.now}` : "");
		if (!this.dirty && this.painted) return;
		this.dirty = false;
		const rows = Math.max(...this.ladders.map(l => l.need()));
		this.ladders.forEach(l => l.show(rows));
		this.seq.dataset.seq = this.now ?? "";
		const book = this.books[this.shown], middle = this.books[0].middle();
		this.depth.show(book, this.outcomes[this.shown].name);
		if (this.history.loaded) this.history.follow(book.middle(), Date.now() / 1000);
		const [bid, ask] = ["bids", "asks"].map(side => this.books[0].best(side));
		const at = middle ?? Number(this.m.lastTradePrice ?? NaN);
		say(this.lead, Number.isFinite(at) ? `${this.outcomes[0].name} ${price(at)}, ${this.outcomes[1].name} ${price(1 - at)}` : "No price yet");
		if (bid && ask) this.lead.append(make("span", { class: "dim" }, ` · spread ${price(Number(ask) - Number(bid))}`));
		this.lead.append(make("span", { class: "dim" }, ` · ${brief(Number(this.m.volumeNum ?? 0))} traded`));
		if (!this.painted && this.books[0].known) {
			this.painted = true;
			performance.mark("book");
		}
	}

	async choose(w) {
		this.window = w;
		const [interval, , seconds, fidelity] = w, shown = this.shown;
		try {
			const { history } = await read("/prices-history", { market: this.outcomes[shown].id, interval, fidelity });
			if (this.closed || w !== this.window || shown !== this.shown) return;
			this.history.loaded = true;
			this.history.show(history, this.outcomes[shown].name, seconds);
		} catch (error) {
			say(this.history.empty, error.message);
		}
	}

	traded(m) {
		if (this.trades.some(t => t.id === m.transaction_hash)) return; // it is told again after a break
		const at = Math.floor(Number(m.timestamp) / 1000), sold = m.side === "SELL";
		this.addTrade({ at, side: m.side, outcome: this.outcomes[0].name, price: m.price, size: m.size, id: m.transaction_hash, sold });
		this.showTape();
		// Who traded, and how much it is in all, is asked for a little later, once for many trades.
		this.asking ??= setTimeout(() => {
			this.asking = null;
			this.loadTape();
			this.reload();
		}, 3000);
	}

	addTrade(t) {
		if (!this.trades.some(other => other.id === t.id)) this.trades.unshift(t);
		this.trades.length = Math.min(this.trades.length, shownTrades);
	}

	tape() {
		this.tapeBox = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Latest trades" });
		return make("section", { class: "card", "aria-label": "Tape" }, make("h2", {}, "Tape"), this.tapeBox);
	}

	async loadTape() {
		try {
			const told = await read("/live-activity/events/" + this.condition);
			if (this.closed) return;
			const fresh = told.map(t => ({ at: Number(t.timestamp), side: t.side, outcome: t.outcome, price: t.price, size: t.size,
				id: t.transaction_hash, wallet: t.user.address, name: t.user.username || t.user.pseudonym }));
			const known = new Set(fresh.map(t => t.id));
			this.trades = [...this.trades.filter(t => !known.has(t.id) && !t.wallet), ...fresh].slice(0, shownTrades);
			this.showTape();
		} catch { /* the stream goes on with what comes */ }
	}

	showTape() {
		const rows = this.trades.map(t => [clock(t.at),
			make("span", { class: t.side === "BUY" ? "up" : "down" }, `${t.side === "BUY" ? "Buy" : "Sell"} ${t.outcome}`),
			price(t.price), grouped(t.size),
			t.wallet ? make("a", { href: walletLink(t.wallet), title: t.wallet, "data-trade": t.id }, t.name ||
				make("span", { class: "figure" }, shorten(t.wallet))) : nothing]);
		const focused = this.tapeBox.contains(document.activeElement) && document.activeElement.dataset.trade;
		this.tapeBox.replaceChildren(rows.length ? table("Latest trades", ["Time", "Trade", "#Price", "#Shares", "Taker"], rows, "tape") :
			make("p", { class: "dim" }, "Nothing was traded yet."));
		if (focused) this.tapeBox.querySelector(`[data-trade="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
	}

	rules() {
		const m = this.m;
		this.fee = make("dd", {}, nothing);
		const facts = [
			["State", stateOf(m)],
			["Tick", price(m.orderPriceMinTickSize ?? m.minimum_tick_size)],
			["Smallest order", m.orderMinSize ?? m.minimum_order_size ? `${m.orderMinSize ?? m.minimum_order_size} shares` : nothing],
			["Fee", this.fee],
			["Ends", m.endDate ? date(m.endDate) : nothing],
			["Kind", m.negRisk ?? m.neg_risk ? "one of several that exclude each other" : "two outcomes, one of which pays $1"],
			["Condition", make("code", { class: "id" }, m.conditionId)],
			...(this.outcomes ?? []).map(o => [`Token ${o.name}`, make("code", { class: "id" }, o.id)]),
		];
		if (this.outcomes) this.loadFee();
		const text = m.description || m.events?.[0]?.description || m.event?.description || "";
		return make("section", { class: "card", "aria-label": "Rules" }, make("h2", {}, "Rules"),
			make("dl", { class: "facts" }, ...facts.flatMap(([name, value]) =>
				[make("dt", {}, name), value.tagName === "DD" ? value : make("dd", {}, value)])),
			text ? make("p", { class: "words", tabindex: "0", role: "region", "aria-label": "The rules in words" }, text) : null);
	}

	async loadFee() {
		try {
			const { fd } = await read("/clob-markets/" + this.condition);
			say(this.fee, fd.r === 0 ? "none" : `takers pay ${+(fd.r * 100).toFixed(4)} % × size × (price × (1 − price))^${fd.e}`);
		} catch (error) {
			say(this.fee, error.message);
		}
	}

	// reload reads the record again: how much was traded, and whether the rules have changed.
	async reload() {
		const m = await read("/markets/" + this.condition).catch(() => null);
		if (!m || this.closed) return;
		const ruled = record => JSON.stringify([stateOf(record), terms(record)]), changed = ruled(m) !== ruled(this.m);
		this.m = m;
		this.dirty = true;
		this.paint();
		if (!changed) return;
		this.main.querySelector('[aria-label="Rules"]').replaceWith(this.rules());
		if (this.ticket) {
			Object.assign(this.ticket.market, terms(m));
			this.ticket.reckon();
		}
	}

	close() {
		this.closed = true;
		clearTimeout(this.asking);
		clearInterval(this.timer);
		if (this.frame) cancelAnimationFrame(this.frame);
		this.stream?.close();
		this.parts.forEach(part => part.close());
	}
}

// terms are what the rules of a market say of its orders.
const terms = m => ({ negRisk: Boolean(m.negRisk ?? m.neg_risk), fee: Number(m.taker_base_fee ?? 0) > 0,
	tick: String(m.orderPriceMinTickSize ?? m.minimum_tick_size ?? 0.01), minimum: Number(m.orderMinSize ?? m.minimum_order_size ?? 5) });

function stateOf(m) {
	const state = m.status ?? (m.closed ? "closed" : "active"), open = m.accepting_orders ?? m.acceptingOrders;
	return state + (state === "active" && open === false ? ", takes no orders" : "");
}

function press(group, button) {
	for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
}
