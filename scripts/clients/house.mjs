// What the suites share: the node's addresses, the markets of the catalog, money for wallets, named
// steps, shapes of answers, and which methods of a client were called.
//
//   node SUITE/e2e.mjs PUBLIC_URL ADMIN_URL TOKEN_FILE CATALOG_FILE
//
// TOKEN_FILE holds the bearer token of the admin listener, which funds the wallets; CATALOG_FILE is
// the catalog that the node was started with (JSON lines or one array, gzipped or not): the markets
// to trade are picked from it.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { ok } from "node:assert";
import { setTimeout as sleep } from "node:timers/promises";

export const [publicURL, adminURL, tokenFile, catalogFile] = process.argv.slice(2);
if (!catalogFile) {
  console.error("usage: node e2e.mjs PUBLIC_URL ADMIN_URL TOKEN_FILE CATALOG_FILE");
  process.exit(2);
}

// Forms of texts on the wire.
export const hex32 = /^0x[0-9a-f]{64}$/;
export const address = /^0x[0-9a-fA-F]{40}$/;
export const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const decimal = /^(0|[1-9][0-9]*)(\.[0-9]*[1-9])?$/;
export const digits = /^[0-9]+$/;

// mismatch says where a value differs from a shape, or nothing. A shape is String, Number or
// Boolean, a pattern of a text, a constant, an array with the shape of its items, an object with
// those of its members ("name?" may be absent; others may be there), or a function.
function mismatch(value, shape, path) {
  if (shape === String || shape === Number || shape === Boolean) {
    const want = shape.name.toLowerCase();
    const bad = typeof value !== want || Number.isNaN(value);
    return bad && `${path} is ${JSON.stringify(value)}, not a ${want}`;
  }
  if (shape instanceof RegExp) {
    const bad = typeof value !== "string" || !shape.test(value);
    return bad && `${path} is ${JSON.stringify(value)}, not like ${shape}`;
  }
  if (typeof shape === "function") return shape(value, path);
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return `${path} is ${JSON.stringify(value)}, not an array`;
    return first(value.map((item, i) => () => mismatch(item, shape[0], `${path}[${i}]`)));
  }
  if (shape === null || typeof shape !== "object") {
    return value !== shape && `${path} is ${JSON.stringify(value)}, not ${JSON.stringify(shape)}`;
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return `${path} is ${JSON.stringify(value)}, not an object`;
  }
  return first(Object.entries(shape).map(([key, of]) => () => {
    const name = key.replace(/\?$/, "");
    if (name !== key && value[name] === undefined) return undefined;
    if (!(name in value)) return `${path} has no ${name}: ${JSON.stringify(value)}`;
    return mismatch(value[name], of, `${path}.${name}`);
  }));
}

function first(checks) {
  for (const check of checks) {
    const found = check();
    if (found) return found;
  }
  return undefined;
}

// like insists on a shape and hands the value on.
export function like(value, shape, name = "the answer") {
  const wrong = mismatch(value, shape, name);
  if (wrong) throw new Error(wrong);
  return value;
}

// either is one of several shapes; record is an object whose keys and values have a shape.
export function either(...shapes) {
  return (value, path) => {
    const wrong = shapes.map((shape) => mismatch(value, shape, path));
    return wrong.every(Boolean) && wrong.join("; or: ");
  };
}

export function record(key, of) {
  return (value, path) => mismatch(value, {}, path) ||
    first(Object.entries(value).map(([name, item]) => () =>
      mismatch(name, key, `a key of ${path}`) || mismatch(item, of, `${path}[${name}]`)));
}

// refused insists on an answer that is an error with that status.
export function refused(answer, status, text) {
  like(answer, { error: String, code: String, status }, "the refusal");
  ok(answer.error.includes(text), `refused with ${answer.error}, not ${text}`);
}

const results = { passed: 0, failed: [], skipped: [], waiting: [] };

// step runs one named check. What fails does not end the run: the rest is worth knowing too. It
// hands on what the check returned, nothing if it failed. TRACE=1 in the environment shows stacks
// and how long each took.
export async function step(name, body) {
  const from = Date.now();
  try {
    const value = await body();
    results.passed++;
    if (process.env.TRACE) console.log(`${name}: ${Date.now() - from} ms`);
    return value;
  } catch (err) {
    results.failed.push(name);
    const text = String(process.env.TRACE ? err.stack : err.message ?? err);
    console.error(`FAILED ${name}\n  ${text.slice(0, 4000).split("\n").join("\n  ")}`);
    return undefined;
  }
}

// need is a step without which the rest makes no sense.
export async function need(name, body) {
  const before = results.failed.length;
  const value = await step(name, body);
  if (results.failed.length > before) finish();
  return value;
}

// aside starts a step that mostly waits; the run ends after it.
export function aside(name, body) {
  results.waiting.push(step(name, body));
}

export function skip(name, why) {
  results.skipped.push(name);
  console.log(`SKIPPED ${name}: ${why}`);
}

// settle waits for what runs aside and ends the run.
export async function settle() {
  await Promise.all(results.waiting);
  finish();
}

function finish() {
  const { passed, failed, skipped } = results;
  console.log(`${passed} passed, ${failed.length} failed, ${skipped.length} skipped`);
  process.exit(failed.length > 0 ? 1 : 0);
}

// began is when the run did, in whole seconds; recent insists on a time since then, in seconds, ten
// minutes more or less: the node's time never steps back, so it follows slowly when the machine's
// clock is set.
const began = Math.floor(Date.now() / 1000);
const drift = 600;
export function recent(seconds, what) {
  const [from, to] = [began - drift, Date.now() / 1000 + drift];
  ok(seconds >= from && seconds <= to, `${what}: ${seconds} is not between ${from} and ${to}`);
}

// until asks again until the answer is truthy. It waits far longer than that takes, also where the
// machine is slow and stands still for seconds.
export async function until(what, ask, seconds = 180) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await sleep(50);
  }
}

// soon checks again until nothing is wrong: for what is looked at anew every few seconds.
export function soon(what, check) {
  let wrong;
  return until(what, async () => {
    try {
      await check();
      return true;
    } catch (err) {
      wrong = err;
      return false;
    }
  }).catch((err) => { throw wrong ?? err; });
}

export { sleep };

// watched hands out a client whose methods are noted when a suite calls them; what they call of
// each other is not.
export function watched(client, called) {
  return new Proxy(client, {
    get(target, name) {
      const value = target[name];
      if (typeof value !== "function") return value;
      return (...args) => {
        called.add(name);
        return value.apply(target, args);
      };
    },
  });
}

// methods are the names of all functions that a client answers to.
export function methods(client) {
  const names = new Set();
  for (let o = client; o && o !== Object.prototype; o = Object.getPrototypeOf(o)) {
    for (const [name, d] of Object.entries(Object.getOwnPropertyDescriptors(o))) {
      if (name !== "constructor" && typeof d.value === "function") names.add(name);
    }
  }
  return [...names].sort();
}

// covered insists that each method was called, or is left out for a reason, and not both.
export function covered(all, called, left) {
  const missed = all.filter((name) => !called.has(name) && !(name in left));
  const stale = Object.keys(left).filter((name) => called.has(name) || !all.includes(name));
  ok(missed.length === 0, `neither called nor left out: ${missed.join(" ")}`);
  ok(stale.length === 0, `left out, but called or not there: ${stale.join(" ")}`);
  console.log(`${called.size} methods called, ${Object.keys(left).length} left out`);
}

function events(path) {
  let bytes = readFileSync(path);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) bytes = gunzipSync(bytes);
  const text = bytes.toString("utf8").trim();
  if (text.startsWith("[")) return JSON.parse(text);
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

// catalog is what the node was started with: events with their markets.
export const catalog = events(catalogFile);

// markets are those for which an order book should exist.
function markets() {
  return catalog.flatMap((event) => event.markets ?? [])
    .filter((m) => !m.closed && !m.archived && m.enableOrderBook !== false)
    .filter((m) => m.acceptingOrders !== false && m.clobTokenIds)
    .map((m) => ({
      condition: m.conditionId, tokens: JSON.parse(m.clobTokenIds), negRisk: !!m.negRisk,
      question: m.question, outcomes: JSON.parse(m.outcomes ?? "[]"),
    }))
    .filter((m) => m.tokens.length === 2 && m.tokens[0] !== m.tokens[1]);
}

// pick is the first market of that kind with an empty book in steps of a cent. Nothing is there if
// the catalog has none.
const taken = new Set();
export async function pick(negRisk) {
  const candidates = markets().filter((m) => m.negRisk === negRisk && !taken.has(m.condition));
  for (const market of candidates.slice(0, 20)) {
    const book = await (await fetch(`${publicURL}/book?token_id=${market.tokens[0]}`)).json();
    const empty = book.bids?.length === 0 && book.asks?.length === 0;
    if (!empty || book.tick_size !== "0.01" || book.last_trade_price !== "") continue;
    taken.add(market.condition);
    return { ...market, minimum: Number(book.min_order_size) };
  }
  return undefined;
}

async function operate(path, body) {
  const response = await fetch(`${adminURL}/admin/${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${readFileSync(tokenFile, "utf8").trim()}`,
      "content-type": "application/json",
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  ok(response.ok, `${path} ${JSON.stringify(body)}: ${response.status} ${text}`);
  return JSON.parse(text);
}

// fund pays collateral, or one token, into the account of an address.
export function fund(wallet, amount, token) {
  return operate("fund", { wallet, amount, token });
}

// link lets an owner trade for a wallet.
export function link(wallet, owner) {
  return operate("link", { wallet, owner });
}
