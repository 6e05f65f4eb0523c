// The frame of the console: which page is shown, how its stream fares, and light or dark.
import { restore } from "./account.js";
import { $, say } from "./dom.js";
import { about } from "./node.js";
import { open as market } from "./market.js";
import { open as markets } from "./markets.js";
import { open as wallet } from "./wallet.js";

const main = $("main"), fares = $("fares");
let close = null, turns = 0;

const words = { opening: "connecting", live: "live", late: "lagging", resync: "resyncing", closed: "reconnecting",
	refused: "refused" };
const looks = { live: "good", late: "bad", resync: "warn", closed: "bad", refused: "bad" };

// teller is how a page says what the frame shows of it, as long as it is the one that is shown.
function teller() {
	const turn = ++turns;
	const when = say => (...given) => turn === turns && say(...given);
	let seq = 0;
	return {
		title: when(text => { document.title = `${text} · clobd`; }),
		seq: when(n => say($("seq"), `seq ${seq = n}`)),
		state: when((name, silent) => {
			fares.hidden = false;
			fares.className = "pill " + (looks[name] ?? "");
			fares.dataset.state = name;
			say($("state"), words[name]);
			if (name === "late") say($("seq"), `seq ${seq} · ${(silent / 1000).toFixed(1)} s behind`);
		}),
		still: when(() => {
			fares.hidden = true; // nothing is followed
			say($("seq"), "");
		}),
	};
}

// route shows the page that the address names.
function route() {
	close?.();
	const tell = teller(), [, name, part] = location.hash.match(/^#\/(\w*)\/?(.*)$/) ?? [];
	fares.hidden = true;
	say($("seq"), "");
	let id = part;
	try {
		id = decodeURIComponent(part ?? "");
	} catch { /* it names nothing, as the node will say */ }
	const pages = { market: [market, null], wallet: [wallet, "to-wallet"] };
	const [open, link] = (name === "market" ? id && pages.market : pages[name]) || [markets, "to-markets"];
	for (const other of ["to-markets", "to-wallet"]) {
		if (other === link) $(other).setAttribute("aria-current", "page");
		else $(other).removeAttribute("aria-current");
	}
	close = open(main, id || null, tell);
}

const themes = ["system", "light", "dark"];

function paint(theme) {
	if (theme === "system") delete document.documentElement.dataset.theme;
	else document.documentElement.dataset.theme = theme;
	say($("theme"), "◐ " + theme);
	$("theme").setAttribute("aria-label", `◐ ${theme} theme`);
}

$("theme").addEventListener("click", () => {
	const theme = themes[(themes.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % themes.length];
	paint(theme);
	try {
		localStorage.setItem("console.theme", theme);
	} catch { /* a browser that keeps nothing: the choice ends with the page */ }
});
paint(document.documentElement.dataset.theme ?? "system");

// Where the address names a page, the hash of the skip link would name another.
$("skip").addEventListener("click", event => {
	event.preventDefault();
	main.focus();
});

addEventListener("hashchange", () => {
	route();
	scrollTo(0, 0);
	main.focus({ preventScroll: true });
});
route();
about().then(node => {
	$("paper").hidden = !node.demo;
	say($("version"), `clobd ${node.version}, chain ${node.chain}.`);
	return restore();
}).catch(() => {});
