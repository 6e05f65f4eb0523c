// The pictures: how deep a book is, and where its price was. Each is drawn for the width that it has.
import { clock, day, draw, make, minute, price, say, size } from "./dom.js";

const height = 190, left = 46, right = 10, top = 10, bottom = 24;

// Picture draws again when its place gets another width. paint(svg, width) draws.
class Picture {
	constructor(label) {
		this.svg = draw("svg", { role: "img", height, "aria-label": label });
		this.empty = make("p", { class: "empty" }, "");
		this.box = make("div", { class: "picture" }, this.svg, this.empty);
		new ResizeObserver(() => this.width !== this.box.clientWidth && this.redraw()).observe(this.box);
	}

	redraw() {
		this.width = this.box.clientWidth;
		if (!this.width) return;
		this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
		this.svg.setAttribute("width", this.width);
		const parts = this.paint(left, this.width - right, top, height - bottom);
		this.svg.replaceChildren(...parts.filter(Boolean));
		this.svg.toggleAttribute("hidden", !parts.length);
		this.empty.hidden = parts.length > 0;
	}

	label(text) {
		if (this.svg.getAttribute("aria-label") !== text) this.svg.setAttribute("aria-label", text);
	}
}

const path = points => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

const text = (x, y, anchor, what) => draw("text", { x, y, "text-anchor": anchor }, what);

// steps are round values from low to high, some count of them.
function steps(low, high, count) {
	const raw = (high - low) / count || 1, unit = 10 ** Math.floor(Math.log10(raw));
	const step = [1, 2, 5, 10].map(m => m * unit).find(s => s >= raw);
	const all = [];
	for (let v = Math.ceil(low / step - 1e-9) * step + 0; v <= high + step * 1e-9; v += step) all.push(v || 0);
	return all;
}

// Depth shows how much can be bought and sold up to each price.
export class Depth extends Picture {
	show(book, name) {
		Object.assign(this, { book, name });
		this.redraw();
	}

	paint(x0, x1, y0, y1) {
		if (!this.book) return [];
		const bids = this.book.levels("bids"), asks = this.book.levels("asks"), all = [...bids, ...asks];
		say(this.empty, "Nothing rests in this book.");
		if (!all.length) return [];
		const prices = all.map(l => Number(l.price)), total = l => Number(l.total) / 1e6;
		const gap = 0.02, low = Math.max(0, Math.min(...prices) - gap), high = Math.min(1, Math.max(...prices) + gap);
		const most = Math.max(...all.map(total)) * 1.08;
		const x = v => x0 + (v - low) / (high - low) * (x1 - x0), y = v => y1 - v / most * (y1 - y0);
		const area = (levels, end, name) => {
			if (!levels.length) return [];
			const points = [[x(Number(levels[0].price)), y(0)]];
			levels.forEach((l, i) => points.push([x(Number(l.price)), y(total(l))],
				[x(i + 1 < levels.length ? Number(levels[i + 1].price) : end), y(total(l))]));
			return [draw("path", { class: "area " + name, d: path([...points, [x(end), y(0)]]) + "Z" }),
				draw("path", { class: "line " + name, d: path(points) })];
		};
		const sum = levels => size(levels.length ? total(levels.at(-1)) : 0);
		this.label(`Depth of ${this.name}: ${sum(bids)} wanted, the best at ${price(bids[0]?.price)}; ` +
			`${sum(asks)} offered, the best at ${price(asks[0]?.price)}.`);
		return [
			...steps(0, most, 4).flatMap(v => [
				draw("line", { class: "grid", x1: x0, x2: x1, y1: y(v), y2: y(v) }),
				text(x0 - 6, y(v) + 4, "end", compact.format(v))]),
			...steps(low, high, (x1 - x0) / 90).map(v => text(x(v), y1 + 17, "middle", price(v))),
			...area(bids, low, "buy"), ...area(asks, high, "sell"),
		];
	}
}

// paces are the times between two marks, in seconds.
const paces = [10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000];

const compact = new Intl.NumberFormat("en", { notation: "compact" });

// History shows where the middle between the best prices was. A pointer over it reads it off.
export class History extends Picture {
	constructor(label) {
		super(label);
		this.points = [];
		this.told = make("output", { class: "read" });
		this.box.append(this.told);
		this.svg.addEventListener("pointermove", event => this.point(event));
		this.svg.addEventListener("pointerleave", () => this.point(null));
	}

	// show takes a window in seconds, or 0 for all there is.
	show(points, name, window) {
		Object.assign(this, { points, name, window });
		this.trim();
		this.redraw();
	}

	// trim drops what is before the window, but for the price with which it begins.
	trim() {
		const { points, window } = this, begin = window && points.length ? points.at(-1).t - window : -Infinity;
		while (points.length > 1 && points[1].t <= begin) points.shift();
		if (points[0]?.t < begin) points[0] = { ...points[0], t: begin };
	}

	// follow makes the last point the price of now.
	follow(p, now) {
		const { points } = this, last = points.at(-1);
		if (p === null || last && last.t > now - (last.p === p ? 5 : 0.25)) return;
		// Points closer together than can be seen become one: so there are never too many.
		if (points.length > 1 && now - points.at(-2).t < (now - points[0].t) / 300) points.pop();
		points.push({ t: now, p });
		this.trim();
		this.redraw();
	}

	paint(x0, x1, y0, y1) {
		const points = this.points;
		say(this.empty, "No prices yet in this time.");
		if (!points.length) return [];
		const values = points.map(q => q.p), few = (Math.max(...values) - Math.min(...values)) * 0.15 + 0.005;
		const low = Math.max(0, Math.min(...values) - few), high = Math.min(1, Math.max(...values) + few);
		const end = points.at(-1).t, begin = Math.min(points[0].t, end - 60);
		const x = t => x0 + (t - begin) / (end - begin) * (x1 - x0), y = v => y1 - (v - low) / (high - low) * (y1 - y0);
		this.scale = { x, y, y0, y1 };
		const line = [];
		for (const q of points) {
			if (line.length) line.push([x(q.t), line.at(-1)[1]]);
			line.push([x(q.t), y(q.p)]);
		}
		if (line.length === 1) line.unshift([x(Math.max(begin, points[0].t - 20)), line[0][1]]);
		const span = end - begin, far = span > 100_000, step = paces.find(s => span / s <= (x1 - x0) / 80) ?? paces.at(-1);
		const zone = new Date(end * 1000).getTimezoneOffset() * 60, times = [];
		for (let t = Math.ceil((begin - zone) / step) * step + zone; t < end; t += step) times.push(t);
		this.label(`Price of ${this.name}: from ${price(values[0])} to ${price(values.at(-1))}, ` +
			`lowest ${price(Math.min(...values))}, highest ${price(Math.max(...values))}.`);
		return [
			...steps(low, high, 4).flatMap(v => [
				draw("line", { class: "grid", x1: x0, x2: x1, y1: y(v), y2: y(v) }),
				text(x0 - 6, y(v) + 4, "end", price(v))]),
			...times.filter(t => x(t) > x0 + 14 && x(t) < x1 - 14).map(t =>
				text(x(t), y1 + 17, "middle", far ? day(t) : step < 60 ? clock(t) : minute(t))),
			draw("path", { class: "area", d: path([[line[0][0], y1], ...line, [line.at(-1)[0], y1]]) + "Z" }),
			draw("path", { class: "line", d: path(line) }),
			draw("circle", { class: "dot", r: 3.5, cx: line.at(-1)[0], cy: line.at(-1)[1] }),
			this.cross = draw("line", { class: "cross", y1: y0, y2: y1, visibility: "hidden" }),
		];
	}

	point(event) {
		if (!event || !this.points.length || !this.cross) {
			this.cross?.setAttribute("visibility", "hidden");
			return say(this.told, "");
		}
		const at = event.clientX - this.svg.getBoundingClientRect().left, { x } = this.scale;
		const q = this.points.findLast(q => x(q.t) <= at) ?? this.points[0];
		const place = Math.min(Math.max(at, x(this.points[0].t)), x(this.points.at(-1).t));
		for (const name of ["x1", "x2"]) this.cross.setAttribute(name, place);
		this.cross.setAttribute("visibility", "visible");
		say(this.told, `${day(q.t)} ${minute(q.t)} · ${price(q.p)}`);
	}
}
