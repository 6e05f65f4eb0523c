// hostile.mjs FOLDER: writes a catalog whose every text wants to be markup, and a file of profiles
// that call the test's own wallets so.
import fs from "node:fs";
import * as signer from "../../api/console/static/signer.js";

export const markup = '<img src=x onerror=window.hurt=1>';
export const script = '"\'></textarea><script>window.hurt=1</script>{{7*7}}';
export const condition = "0x" + "e".repeat(64);
export const tokens = ["777001", "777002"];

// keys are those of two traders.
export const keys = ["a1", "b2"].map(pair => signer.unhex("0x" + pair.repeat(32)));

if (process.argv[1]?.endsWith("hostile.mjs")) {
	const folder = process.argv[2], at = "2026-01-01T00:00:00Z";
	const outcomes = ["Yes " + markup, "No " + script];
	const event = {
		id: "9900", ticker: "hostile", slug: "hostile", title: "Event " + markup,
		description: "Words " + script, active: true, closed: false, archived: false, negRisk: false,
		startDate: at, endDate: "2031-01-01T00:00:00Z",
		tags: [{ id: "9901", label: "Tag " + markup, slug: "hostile-tag" }],
		markets: [{
			id: "9902", question: "Question " + markup + script, conditionId: condition,
			slug: "hostile-market",
			outcomes: JSON.stringify(outcomes), clobTokenIds: JSON.stringify(tokens), groupItemTitle: markup,
			description: "Rules " + markup + script, icon: "javascript:window.hurt=1",
			image: "x\" onerror=\"window.hurt=1",
			active: true, closed: false, archived: false, enableOrderBook: true, acceptingOrders: true,
			orderPriceMinTickSize: 0.01, orderMinSize: 5, negRisk: false, startDate: at,
			endDate: "2031-01-01T00:00:00Z",
		}],
	};
	fs.mkdirSync(`${folder}/catalog`, { recursive: true });
	fs.writeFileSync(`${folder}/catalog/hostile.jsonl`, JSON.stringify(event) + "\n");
	fs.writeFileSync(`${folder}/profiles.json`, JSON.stringify(keys.map((key, i) => ({
		proxyWallet: signer.addressOf(key), name: `Trader ${i} ${markup}`, pseudonym: script,
		bio: script + markup,
		profileImage: "", profileImageOptimized: "", displayUsernamePublic: true,
	}))));
}
