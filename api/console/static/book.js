// A book as the stream tells it, and the ladder that shows it.
import { decimal, grouped, make, micros, price, say } from "./dom.js";

const sides = ["bids", "asks"];

// Book holds the levels of one outcome: sizes in millionths by price, as the node writes that.
export class Book {
	constructor(token) {
		this.token = token;
		this.known = false;
		this.bids = new Map();
		this.asks = new Map();
	}

	// fill takes a whole book.
	fill(told) {
		for (const side of sides) {
			this[side] = new Map(told[side].map(level => [level.price, micros(level.size)]));
		}
		this.known = true;
		this.hash = told.hash;
	}

	// change takes one entry of a price_change. It returns false if what is best afterwards is not what
	// the node says: then something went missing, and the book must come anew.
	change(entry) {
		const levels = entry.side === "BUY" ? this.bids : this.asks, left = micros(entry.size);
		if (left === 0n) levels.delete(entry.price);
		else levels.set(entry.price, left);
		this.hash = entry.hash;
		this.said = [entry.best_bid, entry.best_ask];
	}

	agrees() {
		return !this.said || sides.every((side, i) => this.levels(side)[0]?.price === this.said[i]);
	}

	// levels are those of a side, the best first, each with the sum up to it.
	levels(side) {
		const sign = side === "bids" ? -1 : 1;
		let total = 0n;
		return [...this[side]].map(([price, size]) => ({ price, size }))
			.sort((a, b) => sign * (Number(a.price) - Number(b.price)))
			.map(level => ({ ...level, total: total += level.size }));
	}

	best(side) { return this.levels(side)[0]?.price; }

	middle() {
		const [bid, ask] = sides.map(side => this.best(side));
		return bid === undefined || ask === undefined ? null : (Number(bid) + Number(ask)) / 2;
	}
}

// shownRows are those of a side that are seen at once: fewer where ladders stand below each other.
const shownRows = () => matchMedia("(max-width: 640px)").matches ? 5 : 10;

// Ladder shows a Book: asks above bids, the best prices in the middle. Whoever clicks on a price picks
// it. Tab goes to the best price of each side, and the arrows go on from there.
export class Ladder {
	constructor(book, name, pick) {
		this.book = book;
		this.all = false;
		this.rows = 5; // of each side; it grows, so that nothing jumps when a level goes
		this.bodies = Object.fromEntries(sides.map(side => [side, make("tbody", { class: side,
			onclick: event => {
				const row = event.target.closest("tr");
				if (row?.dataset.price) pick(row.dataset.price, side);
			}, onkeydown: event => {
				const row = event.target.closest("tr"), next = { ArrowUp: row?.previousElementSibling,
					ArrowDown: row?.nextElementSibling }[event.key];
				if (!next?.dataset.price) return;
				event.preventDefault(); // the page would move
				next.querySelector("button").focus();
			} })]));
		this.spread = make("th", { colspan: 3, scope: "rowgroup" }, "no book yet");
		this.table = make("table", { class: "ladder" },
			make("caption", {}, name),
			make("thead", {}, make("tr", {}, ...["Price", "Size", "Total"].map(h => make("th", { scope: "col" }, h)))),
			this.bodies.asks, make("tbody", { class: "middle" }, make("tr", {}, this.spread)), this.bodies.bids);
	}

	// need is how many rows the book wants, so that ladders side by side have the same.
	need() { return Math.min(Math.max(this.book.bids.size, this.book.asks.size), this.all ? Infinity : shownRows()); }

	show(rows) {
		this.rows = this.all ? rows : Math.min(Math.max(rows, this.rows), shownRows());
		const both = sides.map(side => this.book.levels(side));
		const cut = both.map(levels => this.all ? levels : levels.slice(0, shownRows()));
		const most = cut.map(levels => levels.at(-1)?.total ?? 0n).reduce((a, b) => a > b ? a : b);
		sides.forEach((side, i) => this.showSide(this.bodies[side], cut[i], i === 1, most));
		const [bid, ask] = both.map(levels => levels[0]?.price);
		say(this.spread, bid && ask ? `Spread ${price(decimal(micros(ask) - micros(bid)))}` :
			bid ? "nobody sells" : ask ? "nobody buys" : this.book.known ? "the book is empty" : "no book yet");
		this.table.dataset.hash = this.book.hash ?? "";
	}

	// showSide has the best level next to the middle, whichever side it is.
	showSide(body, levels, above, most) {
		const { rows } = this;
		while (body.rows.length > rows) body.lastElementChild.remove();
		while (body.rows.length < rows) {
			body.append(make("tr", {}, make("td", {}, make("button", { type: "button", hidden: true })), make("td"),
				make("td")));
		}
		for (let i = 0; i < rows; i++) {
			const level = levels[i], row = body.rows[above ? rows - 1 - i : i];
			const texts = level ? [price(level.price), grouped(decimal(level.size)), grouped(decimal(level.total))] :
				["", "", ""];
			const button = row.cells[0].firstElementChild;
			texts.forEach((text, n) => say(n ? row.cells[n] : button, text));
			button.hidden = !level;
			button.tabIndex = i ? -1 : 0;
			const fill = level && most ? Number(level.total * 1000n / most) / 10 + "%" : "0%";
			if (row.dataset.fill !== fill) row.style.setProperty("--fill", row.dataset.fill = fill);
			row.dataset.price = level?.price ?? "";
		}
	}
}
