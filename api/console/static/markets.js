// The list of markets: what the catalog has, as the reader filters and sorts it, with live prices.
import { brief, date, isAddress, isCondition, make, marketLink, nothing, price, say, walletLink } from "./dom.js";
import { read, tokensOf } from "./node.js";
import { Stream } from "./stream.js";

const page = 40, most = 400; // rows that are asked for at once, and that are followed live
const each = 60_000; // milliseconds, then volumes are read again

const orders = [["volume24hr", "Volume, 24 hours"], ["volumeNum", "Volume, all"], ["liquidityNum", "Liquidity"],
	["startDate", "Newest"], ["endDate", "Ends soonest"]];
const states = [["open", "Open"], ["closed", "Closed"], ["all", "All"]];

// open shows the page below main and returns what ends it.
export function open(main, _, tell) {
	const list = new List(main, tell);
	list.load();
	return () => list.close();
}

class List {
	constructor(main, tell) {
		Object.assign(this, { tell, rows: new Map(), byToken: new Map(), followed: new Set(), wish: 0, closed: false });
		const choose = (name, label, options) => make("label", {}, label, make("select", { name, onchange: () => this.load() },
			...options.map(([value, text]) => make("option", { value }, text))));
		this.form = make("form", { role: "search", class: "filters", onsubmit: event => {
			event.preventDefault();
			this.go();
		} },
			make("label", { class: "wide" }, "Search", make("input", { type: "search", name: "q", id: "search", autocomplete: "off",
				placeholder: "A question, a condition id, an address ( / )", oninput: () => this.typed() })),
			choose("state", "State", states), choose("order", "Sort by", orders), choose("tag", "Tag", [["", "All tags"]]));
		this.body = make("tbody");
		const head = (text, figure) => make("th", { scope: "col", class: figure ? "figure" : null }, text);
		this.table = make("table", { class: "markets stack" }, make("caption", { class: "unseen" }, "Markets"),
			make("thead", {}, make("tr", {}, head("Market"), head("Price", true), head("Bid", true), head("Ask", true),
				head("Spread", true), head("24 h", true), head("Volume", true), head("Liquidity", true))), this.body);
		this.note = make("p", { class: "dim note", role: "status" }, "Asking for markets…");
		this.more = make("button", { type: "button", hidden: true, onclick: () => this.next() }, "More markets");
		main.replaceChildren(make("h1", { tabindex: "-1" }, "Markets"), this.form,
			make("section", { class: "card flush", "aria-label": "Markets" }, this.table, this.note, this.more));
		tell.title("Markets");
		this.shortcut = event => {
			const busy = event.target.closest?.("input, select, textarea");
			if (event.key !== "/" || busy || event.ctrlKey || event.metaKey) return;
			event.preventDefault();
			this.form.elements.q.focus();
		};
		addEventListener("keydown", this.shortcut);
		this.minute = setInterval(() => document.hidden || this.count(), each);
		this.loadTags();
	}

	async loadTags() {
		try {
			for (let offset = 0, tags; offset < 1000 && (!tags || tags.length === 100); offset += 100) {
				tags = await read("/tags", { limit: 100, offset, order: "label", ascending: true });
				this.form.elements.tag.append(...tags.filter(t => t.slug)
					.map(t => make("option", { value: t.slug }, t.label ?? t.slug)));
			}
		} catch { /* the list does without */ }
	}

	// go opens what an id or an address names.
	go() {
		const q = this.form.elements.q.value.trim();
		if (isAddress(q)) location.hash = walletLink(q);
		else if (isCondition(q)) location.hash = marketLink(q);
		else this.body.querySelector("tr:not([hidden]) a")?.focus();
	}

	// typed hides at once what does not fit, and then asks the node for what does.
	typed() {
		for (const row of this.rows.values()) row.line.hidden = !has(row.words, this.form.elements.q.value);
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.load(), 120);
	}

	filter() {
		const { state, order, tag } = this.form.elements;
		return { closed: { open: false, closed: true }[state.value], order: order.value, tag_slug: tag.value,
			ascending: order.value === "endDate", end_date_min: order.value === "endDate" && state.value === "open" ?
				new Date().toISOString().slice(0, 19) + "Z" : undefined };
	}

	async load() {
		const wish = ++this.wish, q = this.form.elements.q.value.trim();
		this.cursor = undefined;
		const told = await this.asked(() => q ? this.search(q) : this.list());
		if (!told || wish !== this.wish || this.closed) return;
		this.rows.clear();
		this.byToken.clear();
		this.add(told);
	}

	async list() {
		const told = await read("/markets/keyset", { ...this.filter(), limit: page, after_cursor: this.cursor });
		this.cursor = told.next_cursor;
		return told.markets;
	}

	// search finds events by their words, and shows their markets: first those that have all the words
	// themselves.
	async search(q) {
		const { events } = await read("/public-search", { q, limit_per_type: 20 });
		if (!events.length) return [];
		const told = await read("/events/keyset", { id: events.map(e => e.id).join(","), limit: 100 });
		const place = new Map(events.map((e, i) => [e.id, i])), { closed, tag_slug: tag } = this.filter();
		return told.events.sort((a, b) => place.get(a.id) - place.get(b.id))
			.filter(e => !tag || (e.tags ?? []).some(t => t.slug === tag))
			.flatMap(e => (e.markets ?? []).map(m => ({ ...m, events: [e] })))
			.filter(m => closed === undefined || Boolean(m.closed) === closed)
			.map(m => ({ m, fits: has(wordsOf(m), q) })).sort((a, b) => b.fits - a.fits).map(({ m }) => m);
	}

	// asked shows why a question fails, unless another one has been asked since.
	async asked(question) {
		const wish = this.wish;
		this.table.setAttribute("aria-busy", "true");
		try {
			return await question();
		} catch (error) {
			if (wish === this.wish && !this.closed) say(this.note, error.message);
			return null;
		} finally {
			this.table.removeAttribute("aria-busy");
		}
	}

	async next() {
		const wish = this.wish, told = await this.asked(() => this.list());
		if (told && wish === this.wish && !this.closed) this.add(told);
	}

	add(markets) {
		for (const m of markets) {
			if (!m.conditionId || this.rows.has(m.conditionId)) continue;
			const row = new Row(m);
			this.rows.set(m.conditionId, row);
			if (row.token) this.byToken.set(row.token, row);
		}
		this.body.replaceChildren(...[...this.rows.values()].map(row => row.line));
		this.more.hidden = !this.cursor;
		const n = this.rows.size;
		say(this.note, n ? `${n} ${n === 1 ? "market" : "markets"}${this.cursor ? ", and more" : ""}` : "No market fits.");
		this.follow();
	}

	tokens() { return [...this.byToken.keys()].slice(0, most); }

	// follow asks for live prices of what is listed, and no longer for those of what was.
	follow() {
		const tokens = this.tokens(), wanted = new Set(tokens);
		if (!this.stream) {
			if (tokens.length) this.connect();
			return;
		}
		const change = (operation, ids) => ids.length && this.stream.send({ type: "market", assets_ids: ids, operation });
		change("subscribe", tokens.filter(t => !this.followed.has(t)));
		change("unsubscribe", [...this.followed].filter(t => !wanted.has(t)));
		this.followed = wanted;
	}

	connect() {
		this.stream = new Stream("/ws/market", { state: this.tell.state, message: m => this.hear(m), hello: () => {
			const tokens = this.tokens();
			this.followed = new Set(tokens);
			return { type: "market", assets_ids: tokens, heartbeat: true, conflate: true };
		} });
	}

	// count reads again how much was traded in what is listed.
	async count() {
		const ids = [...this.rows.keys()].slice(0, most);
		try {
			for (let i = 0; i < ids.length; i += page) {
				const told = await read("/markets/keyset", { condition_ids: ids.slice(i, i + page).join(","), limit: page });
				if (this.closed) return;
				for (const m of told.markets) this.rows.get(m.conditionId)?.count(m);
			}
		} catch { /* the next minute */ }
	}

	hear(m) {
		this.tell.seq(m.seq);
		if (m.event_type === "price_change") {
			for (const c of m.price_changes) this.byToken.get(c.asset_id)?.quote(c.best_bid, c.best_ask);
		} else if (m.event_type === "book") {
			this.byToken.get(m.asset_id)?.quote(m.bids.at(-1)?.price, m.asks.at(-1)?.price);
		}
	}

	close() {
		this.closed = true;
		clearTimeout(this.timer);
		clearInterval(this.minute);
		removeEventListener("keydown", this.shortcut);
		this.stream?.close();
	}
}

const wordsOf = m => [m.question, m.events?.[0]?.title, m.slug, m.groupItemTitle].join(" ").toLowerCase();
const has = (words, q) => q.toLowerCase().split(/\s+/).every(w => words.includes(w));

// Row is one market of the list.
class Row {
	constructor(m) {
		const outcomes = tokensOf(m), question = m.question || m.slug || m.conditionId, event = m.events?.[0]?.title;
		this.token = outcomes?.[0].id;
		this.words = wordsOf(m);
		const figures = ["Price", "Bid", "Ask", "Spread", "24 h", "Volume", "Liquidity"];
		this.cells = figures.map(name => make("td", { class: "figure", "data-head": name }));
		const small = [event && event !== question ? event : null, m.closed ? "closed" : m.endDate ? "ends " + date(m.endDate) : null]
			.filter(Boolean).join(" · ");
		this.line = make("tr", {}, make("th", { scope: "row" },
			make("a", { href: marketLink(m.conditionId) }, question), make("small", {}, small)), ...this.cells);
		this.tell(6, brief(Number(m.liquidityNum ?? m.liquidity ?? NaN)));
		let last = NaN;
		try {
			last = Number(JSON.parse(m.outcomePrices)[0]);
		} catch { /* the catalog knows no price */ }
		this.last = last || NaN; // 0 where nothing is known
		this.name = outcomes?.[0].name ?? "";
		this.quote(m.bestBid || undefined, m.bestAsk || undefined);
		this.count(m);
	}

	// tell writes a figure. Where there is little room, one that says nothing is left out.
	tell(i, text) {
		say(this.cells[i], text);
		this.cells[i].classList.toggle("idle", text === nothing || text === "$0.00");
	}

	quote(bid, ask) {
		const both = bid !== undefined && ask !== undefined, middle = both ? (Number(bid) + Number(ask)) / 2 : this.last;
		const shown = [price(Number.isFinite(middle) ? middle : null), price(bid), price(ask),
			both ? price(Number(ask) - Number(bid)) : nothing];
		if (this.middle !== undefined && middle !== this.middle && Number.isFinite(middle)) {
			const cell = this.cells[0], name = middle > this.middle ? "rose" : "fell";
			cell.classList.remove("rose", "fell");
			void cell.offsetWidth; // so that the same flash begins anew
			cell.classList.add(name);
		}
		this.middle = middle;
		shown.forEach((text, i) => this.tell(i, text));
		this.cells[0].title = this.name;
	}

	// count shows how much was traded, as the node counts it.
	count(m) {
		[m.volume24hr ?? 0, m.volumeNum ?? m.volume ?? 0].forEach((v, i) => this.tell(4 + i, brief(Number(v))));
	}
}
