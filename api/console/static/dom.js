// Elements, and how figures are written. All that comes from the node is set as text.

export const $ = id => document.getElementById(id);

// make makes an element. Of its properties, class, data-…, aria-… and the like become attributes and
// on… listeners; its children are elements, or texts, which stay texts.
export function make(tag, properties = {}, ...children) {
	const e = document.createElement(tag);
	for (const [name, value] of Object.entries(properties)) {
		if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
		else if (value === true) e.setAttribute(name, "");
		else if (value !== false && value !== undefined && value !== null) e.setAttribute(name, value);
	}
	e.append(...children.filter(c => c !== null && c !== undefined));
	return e;
}

// draw makes an element of a picture.
export function draw(tag, properties = {}, ...children) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [name, value] of Object.entries(properties)) e.setAttribute(name, value);
	e.append(...children);
	return e;
}

// say changes a text only if it differs, so that nothing is selected, painted or read out in vain.
export function say(e, text) {
	if (e.textContent !== text) e.textContent = text;
}

// table makes a table: a caption for those who cannot see it, heads, and rows of cells. A head that
// begins with "#" is that of figures.
export function table(caption, heads, rows, name = "") {
	const figure = heads.map(h => h.startsWith("#"));
	const cells = row => row.map((cell, i) => make(i ? "td" : "th",
		{ class: figure[i] ? "figure" : null, scope: i ? null : "row", "data-head": heads[i].replace("#", "") },
		cell));
	return make("table", { class: name },
		make("caption", { class: "unseen" }, caption),
		make("thead", {}, make("tr", {}, ...heads.map((h, i) =>
			make("th", { scope: "col", class: figure[i] ? "figure" : null }, h.replace("#", ""))))),
		make("tbody", {}, ...rows.map(row => make("tr", {}, ...cells(row)))));
}

// Amounts are whole millionths as BigInt, so that sums are exact. The node writes them as decimals.

export function micros(text) {
	const [, sign, whole, part = ""] = /^(-?)(\d+)(?:\.(\d{1,6})0*)?$/.exec(String(text).trim()) ?? [];
	if (whole === undefined) return null;
	const value = BigInt(whole) * 1_000_000n + BigInt(part.padEnd(6, "0"));
	return sign ? -value : value;
}

// decimal writes millionths as the node does: without zeros at the end.
export function decimal(value) {
	const sign = value < 0n ? "-" : "", text = String(sign ? -value : value).padStart(7, "0");
	const part = text.slice(-6).replace(/0+$/, "");
	return sign + text.slice(0, -6) + (part && "." + part);
}

// grouped writes a decimal with commas between thousands.
export const grouped = text => text.replace(/^-?\d+/, whole => whole.replace(/\B(?=(\d{3})+$)/g, ","));

const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const nothing = "–";
export const money = v => Number.isFinite(v) ? (v < 0 ? "−$" : "$") + cents.format(Math.abs(v)) : nothing;
export const brief = v => Number.isFinite(v) ? "$" + (v < 10_000 ? cents.format(v) : short.format(v)) : nothing;
export const size = v => Number.isFinite(v) ? grouped(decimal(BigInt(Math.round(v * 1e6)))) : nothing;

// price writes a price in cents: 31¢, 4.85¢.
export function price(v) {
	if (v === null || v === undefined || v === "" || !Number.isFinite(Number(v))) return nothing;
	return String(Math.round(Number(v) * 1e6) / 1e4) + "¢";
}

export const clock = seconds => new Date(seconds * 1000).toTimeString().slice(0, 8);
export const minute = seconds => new Date(seconds * 1000).toTimeString().slice(0, 5);
export const day = seconds => new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
export const date = text => {
	const at = new Date(text);
	return Number.isNaN(at.getTime()) ? nothing :
		at.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
};

// when writes unix seconds as a time today, as a day with a time else.
export const when = seconds => new Date(seconds * 1000).toDateString() === new Date().toDateString() ?
	clock(seconds) : day(seconds) + " " + minute(seconds);

export const shorten = id => id.length > 14 ? id.slice(0, 6) + "…" + id.slice(-4) : id;

export const isAddress = text => /^0x[0-9a-f]{40}$/i.test(text);
export const isCondition = text => /^0x[0-9a-f]{64}$/i.test(text);

export const marketLink = condition => "#/market/" + encodeURIComponent(condition);
export const walletLink = address => "#/wallet/" + encodeURIComponent(address);
