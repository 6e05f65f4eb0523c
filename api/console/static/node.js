// What the page asks of the node: the public routes, as any client may.

// Refused is an answer that is no success, in the node's own words.
export class Refused extends Error {
	constructor(status, told) {
		const text = typeof told?.error === "string" ? told.error : `the node answers ${status}`;
		super(told?.detail && !text.includes(told.detail) ? `${text}: ${told.detail}` : text);
		this.status = status;
	}
}

const sleep = ms => new Promise(done => setTimeout(done, ms));

// ask sends a request. A read that the node has not taken in is sent again: it starts, is busy, or
// has had enough of this address for now.
export async function ask(path, { method = "GET", headers = {}, body, signal } = {}) {
	for (let turn = 0; ; turn++) {
		const answer = await fetch(path, { method, headers, body, signal, cache: "no-store",
			credentials: "omit", redirect: "error" });
		const text = await answer.text();
		let told;
		try {
			told = JSON.parse(text);
		} catch {
			throw new Refused(answer.status, { error: `the node answers ${answer.status} and no JSON` });
		}
		if (answer.ok) return { told, header: name => answer.headers.get(name) };
		if (method !== "GET" || ![425, 429, 503].includes(answer.status) || turn === 4) {
			throw new Refused(answer.status, told);
		}
		await sleep(Math.min(Number(answer.headers.get("Retry-After")) || 0.5, 3) * 1000);
	}
}

export const read = async (path, parameters = {}, signal) => {
	const query = new URLSearchParams(Object.entries(parameters).filter(([, v]) => v !== undefined && v !== ""));
	return (await ask(path + (query.size ? "?" + query : ""), { signal })).told;
};

// about is what stays the same while the node runs: whether it is a demo, and what orders are signed
// for. It is asked for once.
let known = null;
export const about = () => known ??= read("/console/node.json").catch(error => {
	known = null;
	throw error;
});

// tokensOf are the two outcomes of a record of the catalog, which holds JSON in texts: null if the
// record has no such two.
export function tokensOf(record) {
	const list = text => {
		try {
			const all = typeof text === "string" ? JSON.parse(text) : text;
			return Array.isArray(all) ? all.map(String) : [];
		} catch {
			return [];
		}
	};
	const ids = list(record.clobTokenIds), names = list(record.outcomes);
	if (ids.length !== 2) return null;
	return ids.map((id, i) => ({ id, name: names[i] ?? ["Yes", "No"][i] }));
}
