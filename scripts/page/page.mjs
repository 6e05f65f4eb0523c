// page.mjs CHROMIUM PAGE TOKEN CATALOG FOLDER: looks at the operator's page of a node under load
// with a real browser, wide and narrow, light and dark, and writes pictures into FOLDER. The node's
// log has had a warning with a name in it that wants to be markup. What the page shows is compared
// with /metrics, and the node's file CATALOG is taken away for a while. By the name desk.example
// the node is asked as if from elsewhere: there the page wants the token, which is in TOKEN.
import puppeteer from "puppeteer-core";
import assert from "node:assert/strict";
import fs from "node:fs";

const [executablePath, page, tokenFile, catalog, folder] = process.argv.slice(2);
const hostile = "<img src=x onerror=window.hurt=1>";
const sleep = ms => new Promise(done => setTimeout(done, ms));

const browser = await puppeteer.launch({ executablePath, headless: true,
	args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--host-resolver-rules=MAP desk.example 127.0.0.1"] });

// open opens a path of the node and notes what is wrong: errors, and requests to other hosts.
async function open(path, width, from = page) {
	const tab = await browser.newPage(), wrong = [];
	await tab.setViewport({ width, height: 900 });
	await paint(tab, "light");
	tab.on("console", m => ["error", "warn"].includes(m.type()) && wrong.push("console: " + m.text()));
	tab.on("pageerror", e => wrong.push("error: " + e.message));
	tab.on("requestfailed", r => { // a click on a link aborts a request under way
		if (r.failure()?.errorText !== "net::ERR_ABORTED") wrong.push("failed: " + r.url());
	});
	tab.on("request", r => {
		const u = new URL(r.url());
		if (u.protocol !== "data:" && u.host !== new URL(from).host) wrong.push("elsewhere: " + u);
	});
	await tab.goto(new URL(path, from).href, { waitUntil: "load" });
	return { tab, wrong };
}

const paint = (tab, value) =>
	tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);

async function shoot(tab, name) {
	await tab.screenshot({ path: `${folder}/page-${name}.png`, fullPage: true });
}

// check looks at the page itself, in both schemes.
async function check(width) {
	const { tab, wrong } = await open("/", width);
	await tab.waitForFunction(() => document.querySelector("#slow tr") && parseFloat(
		document.querySelector(".tile .big").textContent.replace(",", "")) > 100, { timeout: 40_000 });
	await sleep(3000);
	const told = await tab.evaluate(() => ({
		state: document.getElementById("state").textContent,
		beyond: document.documentElement.scrollWidth - document.documentElement.clientWidth,
		log: document.getElementById("warnings").textContent,
		images: document.querySelectorAll("img").length, hurt: window.hurt,
		nameless: [...document.querySelectorAll(".figures tr, #stages tr, .tile")]
			.filter(e => !e.querySelector("small.name")?.textContent).length,
		figures: document.querySelectorAll(".figures tr").length,
		stages: [...document.querySelectorAll("#stages td:nth-child(2) span")].map(e => e.textContent),
		unnamed: [...document.querySelectorAll("#stages tr")].filter(e =>
			e.querySelector("small.name").textContent !== e.querySelector("th").title).length,
		tight: [...document.querySelectorAll("#stages tr")].map(tr => {
			const at = [...tr.querySelectorAll("td > span:first-child:not(.span)")]
				.map(e => e.getBoundingClientRect());
			return Math.min(...at.slice(1).map((r, i) => r.left - at[i].right));
		}),
		bars: [...document.querySelectorAll("#slow .bar")].map(e => e.getBoundingClientRect().width),
		rest: getComputedStyle(document.querySelector("#legend .s9")).backgroundImage,
		totals: [...document.querySelectorAll("#slow td:nth-child(2)")].map(e => e.textContent),
		missing: [...document.querySelectorAll(".figures tr")].filter(e =>
			e.querySelector("td").textContent === "–").map(e => e.querySelector("small.name").textContent),
	}));
	assert.match(told.state, /^ready/);
	assert.equal(told.beyond, 0, `the page is wider than ${width} px`);
	assert.ok(told.log.includes(hostile), "the warning's name is shown as text: " + told.log);
	assert.equal(told.images, 0);
	assert.equal(told.hurt, undefined);
	assert.equal(told.nameless, 0, "figures without the name of their metric");
	assert.ok(told.figures > 40, `${told.figures} figures`);
	assert.equal(told.stages.length, 10);
	assert.deepEqual(told.missing, [], "figures without a value");
	assert.equal(told.unnamed, 0, "stages without the whole name of their metric");
	assert.ok(Math.min(...told.tight) >= 6, "figures of a stage touch each other: " + told.tight);
	assert.match(told.rest, /gradient/, "what is between the stages looks empty");
	const most = number(told.totals[0]);
	told.bars.forEach((width, i) => assert.ok(
		Math.abs(width / told.bars[0] - number(told.totals[i]) / most) < 0.03,
		`the bar of ${told.totals[i]} is ${width} px wide, that of ${told.totals[0]} ${told.bars[0]}`));
	for (const median of told.stages) assert.match(median, /^[0-9.]+ [µm]?s$/);
	await shoot(tab, `${width}-light`);
	await paint(tab, "dark");
	await shoot(tab, `${width}-dark`);
	assert.deepEqual(wrong, []);
	console.log(`${width} px: ${told.figures} figures, ${told.state}`);
	await tab.close();
}

// scrape reads /metrics: the value of each series, by its name with labels.
async function scrape() {
	const text = await (await fetch(new URL("metrics", page))).text(), values = new Map();
	for (const line of text.split("\n")) {
		const [, name, value] = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
		if (name) values.set(name, Number(value));
	}
	const of = name => values.get(name) ?? assert.fail(`/metrics has no ${name}`);
	return { at: Date.now(), of, values };
}

// edges are bounds of the quantiles low to high of what a histogram counted between two scrapes:
// the lower edge of the bucket of one and the upper edge of that of the other.
function edges(name, low, high, from, to) {
	const [, base, labels] = /^(\w+)\{(.*)\}$/.exec(name), head = `${base}_bucket{${labels},le="`;
	const buckets = [...to.values.keys()].filter(k => k.startsWith(head)).map(k => ({
		edge: Number(k.slice(head.length, -2).replace("+Inf", "Infinity")),
		n: to.of(k) - (from.values.get(k) ?? 0),
	})).sort((a, b) => a.edge - b.edge);
	const all = buckets.at(-1).n, at = q => buckets.findIndex(b => b.n >= q * all);
	return { count: all, low: buckets[at(low) - 1]?.edge ?? 0, high: buckets[at(high)].edge };
}

// number reads a figure as the page writes it: 1,234, 56.7 MiB, 8.90 µs, 1,000 /s.
function number(text) {
	const [, digits, unit] = /^([0-9.,]+) ?(\S*)$/.exec(text) ?? assert.fail(`no figure: ${text}`);
	const scale = { "": 1, "/s": 1, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30,
		"µs": 1e-6, ms: 1e-3, s: 1 }[unit] ?? assert.fail(`${text}: what is ${unit}?`);
	return Number(digits.replaceAll(",", "")) * scale;
}

// shown is what a tab shows of figures, stages and tiles, by the names of their metrics.
const shown = tab => tab.evaluate(() => {
	const all = (of, read) => Object.fromEntries([...document.querySelectorAll(of)].map(read));
	const text = (e, of) => e.querySelector(of).textContent;
	return {
		figures: all(".figures tr", e => [text(e, "small.name"), text(e, "td span")]),
		tiles: all(".tile", e => [text(e, "small.name"), text(e, ".big")]),
		stages: all("#stages tr", e => [e.querySelector("th").title,
			[2, 3, 4].map(n => text(e, `td:nth-child(${n}) span`))]),
	};
});

// agree compares what the page shows with /metrics, which it scrapes each second. Counters lie
// between a scrape before and one after the page's figures, gauges that both scrapes agree upon are
// the same, and memory is near. Rates and percentiles are of 10 s: they lie between the least and
// the most that the scrapes have of any such time, so that an unsteady load disturbs nobody.
async function agree() {
	const { tab, wrong } = await open("/", 1280), scrapes = [], compared = [];
	await tab.waitForSelector("#stages tr");
	for (let n = 0; n < 15; n++) {
		scrapes.push(await scrape());
		await sleep(1000);
	}
	const before = await scrape();
	for (let n = 0; n < 2; n++) { // what is shown then was sampled after the scrape
		const was = (await shown(tab)).figures.clobd_sequencer_sequence, end = Date.now() + 20_000;
		while ((await shown(tab)).figures.clobd_sequencer_sequence === was) {
			assert.ok(Date.now() < end, "the page's Sequence stands still");
			await sleep(50);
		}
	}
	const told = await shown(tab), after = await scrape();
	scrapes.push(before, after);
	const spans = scrapes.flatMap(to => scrapes.map(from =>
		({ from, to, took: (to.at - from.at) / 1000 }))).filter(s => s.took > 8.5 && s.took < 13);
	const within = (name, text, lows, highs, slack = 1) => {
		const value = number(text), low = Math.min(...lows) / slack, high = Math.max(...highs) * slack;
		assert.ok(value >= low && value <= high,
			`the page says of ${name} ${text}: by /metrics it is from ${low} to ${high}`);
		compared.push(name);
	};
	for (const name of ["clobd_sequencer_sequence", "clobd_sequencer_orders_total",
		"clobd_sequencer_commands_total", "clobd_stream_messages_total"]) {
		assert.ok(after.of(name) > 0, `${name} is 0`);
		within(name, told.figures[name], [before.of(name)], [after.of(name)]);
	}
	for (const name of ["clobd_stream_sockets", "clobd_sequencer_ring_slots", "clobd_sequencer_epoch",
		"clobd_sequencer_wallets", "clobd_catalog_markets"]) {
		const is = after.of(name);
		if (before.of(name) === is) within(name, told.figures[name], [is], [is]);
	}
	for (const name of ["process_resident_memory_bytes", "clobd_memory_huge_page_bytes"]) {
		const both = [before.of(name), after.of(name)];
		within(name, told.figures[name], both, both, 1.03);
	}
	const pace = (name, text, low, high) => {
		const all = spans.map(s => edges(name, low, high, s.from, s.to));
		within(`${name}, quantile ${high}`, text, all.map(e => e.low), all.map(e => e.high), 1.05);
	};
	const rate = (name, text, count) => {
		const all = spans.map(s => count(s) / s.took);
		within(`${name}, each second`, text, all, all, 1.1);
	};
	assert.equal(Object.keys(told.stages).length, 10);
	for (const [name, [median, p99, each]] of Object.entries(told.stages)) {
		pace(name, median, 0.4, 0.6);
		pace(name, p99, 0.97, 1);
		rate(name, each, s => edges(name, 0, 1, s.from, s.to).count);
	}
	const route = 'clobd_http_request_seconds{route="post_order"}';
	const orders = "clobd_sequencer_orders_total";
	pace(route, told.tiles[route], 0.97, 1);
	rate(orders, told.tiles[orders], s => s.to.of(orders) - s.from.of(orders));
	assert.deepEqual(wrong, []);
	console.log(`figures: ${compared.length} agree with /metrics, in ${spans.length} spans`);
	await tab.close();
}

// alarm takes the catalog away: the page warns of that, with the name of the metric, until it is
// back.
async function alarm() {
	const { tab, wrong } = await open("/", 1280), name = "clobd_catalog_failures_total";
	const look = () => tab.evaluate(name => {
		const li = [...document.querySelectorAll("#alerts li")].find(e =>
			e.querySelector("small.name")?.textContent === name);
		return li && { text: li.firstChild.textContent, className: li.className,
			seen: li.offsetHeight > 0 && li.querySelector("small.name").offsetHeight > 0,
			state: document.getElementById("state").textContent };
	}, name);
	const wait = async (what, come) => {
		let seen;
		for (const end = Date.now() + 40_000; !come(seen = await look()); await sleep(100)) {
			assert.ok(Date.now() < end, `${what} does not come: ${JSON.stringify(seen)}`);
		}
		return seen;
	};
	await tab.waitForSelector("#stages tr");
	assert.equal(await look(), undefined, "the page warns of a catalog that can be read");
	const away = catalog + ".away";
	fs.renameSync(catalog, away);
	try {
		const told = await wait("a warning of the catalog", seen => seen);
		assert.match(told.text, /^the catalog could not be read, last with success .* ago: /);
		assert.equal(told.className, "alert warn");
		assert.ok(told.seen, "the warning cannot be seen");
		assert.equal(told.state, "ready, with alerts");
		await shoot(tab, "alert");
	} finally {
		fs.renameSync(away, catalog);
	}
	await wait("the end of the warning", seen => !seen);
	assert.deepEqual(wrong, []);
	console.log(`alert: ${name} came and went`);
	await tab.close();
}

// curves looks at the live curves: the runtime's, and the node's alone once they are searched for.
async function curves() {
	const { tab, wrong } = await open("/curves/", 1280);
	const shown = () => tab.evaluate(() =>
		[...document.querySelectorAll(".gtitle")].map(e => e.textContent));
	await tab.waitForFunction(() => document.querySelectorAll("path.js-line").length > 3,
		{ timeout: 60_000 });
	assert.ok(!(await shown())[0].includes("clobd"), "the runtime's curves come first");
	await tab.type("#plot-search", "clobd");
	await sleep(3000);
	const own = await tab.evaluate(() => [...document.querySelectorAll("#plots > *")]
		.filter(e => e.offsetParent).map(e => e.textContent));
	assert.ok(own.length >= 10 && own.every(t => t.includes("clobd")), "the node's curves: " + own);
	const lines = await tab.evaluate(() => document.querySelectorAll("path.js-line").length);
	assert.ok(lines > 10, `${lines} lines are drawn`);
	await shoot(tab, "curves");
	assert.deepEqual(wrong, []);
	console.log(`curves: ${own.length} plots of the node, ${lines} lines`);
	await tab.close();
}

// elsewhere looks at the page by a name that is not this machine's.
async function elsewhere() {
	const there = page.replace("127.0.0.1", "desk.example");
	const { tab, wrong } = await open("/", 380, there);
	const shown = id => tab.evaluate(id => !document.getElementById(id).hidden, id);
	const send = async token => {
		await tab.type("#token", token);
		await tab.click("#door button");
	};
	await tab.waitForSelector("#door:not([hidden])");
	assert.equal(await shown("all"), false);
	await send("guess");
	await tab.waitForFunction(() => document.getElementById("denied").textContent.length > 0);
	await shoot(tab, "380-token");
	await send(fs.readFileSync(tokenFile, "utf8").trim());
	await tab.waitForSelector("#stages tr");
	assert.equal(await shown("door"), false);
	await tab.click('nav a[href="curves/"]');
	await tab.waitForFunction(() => document.querySelectorAll("path.js-line").length > 3,
		{ timeout: 60_000 });
	// The first answers are 401; and over plain HTTP Chromium says that it leaves a header aside.
	assert.deepEqual(wrong.filter(w => !/401|untrustworthy/.test(w)), []);
	console.log("elsewhere: locked, and open with the token");
	await tab.close();
}

try {
	await check(1280);
	await check(380);
	await agree();
	await alarm();
	await curves();
	await elsewhere();
} finally {
	await browser.close();
}
