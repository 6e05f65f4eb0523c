// The page asks for /page.json once a second and shows it. All texts of the node are set as text.
import { alerts } from "./alerts.js";
import { amount, clock, each, names, seconds } from "./units.js";

const $ = id => document.getElementById(id);
const second = 1000, orderPath = 'clobd_http_request_seconds{route="post_order"}';

// make makes an element. What is left of text is text, never markup.
function make(tag, text, className) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

// nameOf makes the small print with the name of a metric, which may be broken where its words end.
function nameOf(metric) {
  const small = make("small", undefined, "name");
  for (const part of metric.split(/(?<=[_{])/)) small.append(part, make("wbr"));
  return small;
}

// say changes a text only if it differs, so that nothing is selected or read out in vain.
function say(e, text, state = "") {
  if (e.textContent !== text) e.textContent = text;
  if (e.dataset.state !== state) {
    e.classList.remove("good", "warn", "bad");
    if (state) e.classList.add(state);
    e.dataset.state = state;
  }
}

// Each row has a label, the name of its metric, and how it reads: a unit, or a function of the sheet.
const disk = ["plenty", "low: a warning", "full: only cancels are taken"];
const cards = [
  ["What the node promises", [
    ["Sequence", "clobd_sequencer_sequence", "count"],
    ["Durability", "--durability", s => s.about.durability === "fsync" ?
      ["fsync", "good", "synced, then answered"] : [s.about.durability, "warn", "answers can be lost"]],
    ["Disk", "clobd_disk_state", (s, v) => [disk[v] ?? "–", v ? v > 1 ? "bad" : "warn" : "good"]],
    ["Free on the disk", "clobd_disk_free_bytes", "bytes"],
    ["Oldest frame not synced", "clobd_journal_oldest_unsynced_seconds", "seconds"],
    ["Epoch, starts so far", "clobd_sequencer_epoch", "count"],
    ["Up", "process_start_time_seconds", (s, v) => [seconds(s.now / 1000 - v)]],
  ]],
  ["Trading", [
    ["Orders accepted", "clobd_sequencer_orders_total", "grows"],
    ["Fills", "clobd_sequencer_fills_total", "grows"],
    ["Cancels", "clobd_sequencer_cancels_total", "grows"],
    ["Commands", "clobd_sequencer_commands_total", "grows"],
    ["Frames", "clobd_sequencer_frames_total", "grows"],
    ["Books", "clobd_sequencer_books", "count"],
    ["Wallets", "clobd_sequencer_wallets", "count"],
  ]],
  ["Queues", [
    ["Ring, waiting", "clobd_sequencer_ring_depth", "count"],
    ["Ring, places", "clobd_sequencer_ring_slots", "count"],
    ["Verification queue", "clobd_verify_queue", "count"],
    ["Verification queue, limit", "clobd_verify_queue_limit", "count"],
    ["Verification places", "clobd_verify_places", "count"],
    ["From turn to turn", "clobd_verify_turn_seconds", "seconds"],
    ["Refused as busy", "clobd_http_busy_total", "grows"],
    ["Frames in flight", "clobd_journal_frames_in_flight", "count"],
  ]],
  ["Refused", "windows", [
    ["Window full", "clobd_limits_hit_total"], ["Engine", "clobd_sequencer_rejects_total"]]],
  ["Streams", [
    ["Sockets of market data", "clobd_stream_sockets", "count"],
    ["Sockets of users", "clobd_stream_readers", "count"],
    ["Sockets for orders", "clobd_entry_sockets", "count"],
    ["Lag, p99", "clobd_stream_lag_seconds", "p99"],
    ["Messages", "clobd_stream_messages_total", "grows"],
    ["Joined for slow readers", "clobd_stream_conflated_total", "grows"],
    ["Cut off", "clobd_stream_closes_total", "sum"],
  ]],
  ["Index, checkpoints, catalog", [
    ["Index lags by, commands", "clobd_index_lag_commands", "count"],
    ["Follower lags by, commands", "clobd_follower_lag_commands", "count"],
    ["Last checkpoint at", "clobd_checkpoint_sequence", "count"],
    ["Checkpoint’s age", "clobd_checkpoint_age_seconds", (s, v) =>
      [s.figures.clobd_checkpoint_sequence?.[0] ? seconds(v) : "none yet"]],
    ["Checkpoint took", "clobd_checkpoint_seconds", "seconds"],
    ["Checkpoints failed", "clobd_checkpoint_failures_total", "count"],
    ["Old data read through", "clobd_scrub_last_timestamp_seconds", (s, v) =>
      [v ? seconds(s.now / 1000 - v) + " ago" : "not yet"]],
    ["Catalog read", "clobd_catalog_last_success_age_seconds", (s, v) =>
      [v < 0 ? "never, or no outside source" : seconds(v) + " ago"]],
    ["Markets described", "clobd_catalog_markets", "count"],
  ]],
  ["Memory and collector", [
    ["Resident", "process_resident_memory_bytes", "bytes"],
    ["Heap in use", "go_memstats_heap_inuse_bytes", "bytes"],
    ["Next collection at", "go_memstats_next_gc_bytes", "bytes"],
    ["In huge pages", "clobd_memory_huge_page_bytes", "bytes"],
    ["Collections", "go_gc_duration_seconds_count", "grows"],
    ["Longest pause", 'go_gc_duration_seconds{quantile="1"}', "seconds"],
    ["Goroutines", "go_goroutines", "count"],
    ["Processor", "process_cpu_seconds_total", (s, v) =>
      [(100 * s.figures.process_cpu_seconds_total[1]).toFixed(0) + " %", "", "of one processor"]],
    ["Open files", "process_open_fds", "count"],
  ]],
];

// known reports whether this node has the metric of a row. Histograms and counters with labels have
// none as long as nothing came.
const known = (s, name, how) => name in s.figures || name.startsWith("-") || how === "p99" || how === "sum";

// read returns text, state and small print of a row.
function read(sheet, name, how) {
  if (how === "p99") {
    const p = sheet.paces[name]?.[0];
    return [p ? seconds(p[1]) : "–"];
  }
  if (how === "sum") {
    const all = names(sheet.figures, name);
    return [amount(all.reduce((n, a) => n + a.value, 0), "count")];
  }
  const figure = sheet.figures[name];
  if (typeof how === "function") return how(sheet, figure?.[0]) ?? ["–"];
  if (!figure) return ["–"];
  if (how === "grows") return [amount(figure[0], "count"), "", each(figure[1])];
  return [amount(figure[0], how)];
}

const tiles = [
  ["Orders", "clobd_sequencer_orders_total", s => growth(s, "clobd_sequencer_orders_total")],
  ["Fills", "clobd_sequencer_fills_total", s => growth(s, "clobd_sequencer_fills_total")],
  ["POST /order, p99", orderPath, s => pace(s, orderPath)],
  ["Sync, p99", "clobd_journal_sync_seconds", s => pace(s, "clobd_journal_sync_seconds")],
];

function growth(s, name) {
  const f = s.figures[name];
  return f ? [each(f[1]), each(f[2])] : ["–", "–"];
}

function pace(s, name) {
  const [short, long] = s.paces[name] ?? [];
  const text = p => p ? seconds(p[1]) : "–";
  return [text(short), text(long)];
}

const updates = []; // what changes with a sheet

function svg(tag, attributes) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}

function buildTiles() {
  for (const [label, name, figure] of tiles) {
    const tile = make("article", undefined, "tile"), big = make("p", "–", "big");
    const picture = svg("svg", { viewBox: "0 0 60 30", preserveAspectRatio: "none", "aria-hidden": "true" });
    const curve = svg("polyline", { points: "" }), minute = make("small", " ");
    picture.append(curve);
    tile.append(make("h3", label), big, picture, minute, nameOf(name));
    $("tiles").append(tile);
    updates.push(s => {
      const [now, long] = figure(s), trail = s.trails?.[name] ?? [];
      say(big, now);
      say(minute, "minute: " + long);
      const top = Math.max(...trail.map(t => t[1])) || 1;
      curve.setAttribute("points", trail.map(([ago, v]) =>
        `${(60 - ago).toFixed(2)},${(29 - 28 * v / top).toFixed(1)}`).join(" "));
    });
  }
}

// row adds a row with a label and the name of its metric, and returns its cell.
function row(body, label, name) {
  const tr = make("tr"), th = make("th", label), td = make("td", "–");
  th.scope = "row";
  th.append(nameOf(name));
  th.title = name;
  tr.append(th, td);
  body.append(tr);
  return td;
}

function cellOf(td) {
  const value = make("span", "–"), more = make("small", "");
  td.replaceChildren(value, more);
  return ([text, state, note]) => {
    say(value, text);
    say(more, note ?? "");
    if (td.dataset.state !== (state ?? "")) td.className = td.dataset.state = state ?? "";
  };
}

function buildCards() {
  for (const [title, rows, counted] of cards) {
    const card = make("section", undefined, "card"), table = make("table", undefined, "figures");
    const body = make("tbody"), caption = make("caption", title, "unseen");
    table.append(caption, body);
    card.append(make("h2", title), table);
    $("cards").append(card);
    if (rows === "windows") {
      updates.push(s => counts(s, body, counted));
      continue;
    }
    for (const [label, name, how] of rows) {
      const td = row(body, label, name), set = cellOf(td);
      updates.push(s => {
        td.parentNode.hidden = !known(s, name, how);
        set(read(s, name, how));
      });
    }
  }
}

// counts shows the counters of metrics with labels that have counted anything.
function counts(s, body, metrics) {
  const found = metrics.flatMap(([label, metric]) => {
    const all = names(s.figures, metric).sort((a, b) => b.value - a.value).slice(0, 8);
    return all.length ? all.map(a => [`${label}: ${a.label}`, a.name]) : [[label + ": none", metric]];
  });
  const key = found.map(f => f[1]).join();
  if (body.dataset.key !== key) {
    body.dataset.key = key;
    body.replaceChildren();
    body.cells = found.map(([label, name]) => [name, cellOf(row(body, label, name))]);
  }
  for (const [name, set] of body.cells) {
    set(s.figures[name] ? read(s, name, "grows") : ["0"]);
  }
}

function buildStages(stages) {
  for (const [label, name] of [...stages.map(s => [s, `clobd_stage_seconds{stage="${s}"}`]),
    ["POST /order, whole", orderPath]]) {
    const tr = row($("stages"), label, name).parentNode, cells = [tr.lastChild, make("td"), make("td")];
    const roomy = make("td", undefined, "roomy"), span = make("span", undefined, "span"), bar = make("i");
    tr.append(cells[1], cells[2], roomy);
    roomy.append(span);
    span.append(bar);
    const set = cells.map(cellOf);
    updates.push(s => {
      const [short, long] = s.paces[name] ?? [];
      const text = [seconds, seconds, v => amount(v, "rate")];
      set.forEach((to, i) => to([short ? text[i](short[i]) : "–", "", long ? text[i](long[i]) : "–"]));
      const at = v => Math.min(Math.max(Math.log10(v * 1e6) / 6, 0), 1); // 1 µs to 1 s
      bar.hidden = !short;
      if (short) {
        bar.style.left = 98 * at(short[0]) + "%";
        bar.style.width = 98 * (at(short[1]) - at(short[0])) + "%";
      }
    });
  }
  stages.concat("rest").forEach((name, i) => {
    const item = make("span");
    item.append(make("i", undefined, "s" + i), name);
    $("legend").append(item);
  });
}

function slowest(s) {
  const key = s.slowest.map(o => o.at + ":" + o.total).join();
  if ($("slow").dataset.key === key) return;
  $("slow").dataset.key = key;
  const slowest = Math.max(...s.slowest.map(o => o.total)); // whose bar is as wide as its column
  $("slow").replaceChildren(...s.slowest.map(o => {
    const tr = make("tr"), stages = make("td"), bar = make("span", undefined, "bar");
    const rest = Math.max(o.total - o.stages.reduce((a, b) => a + b, 0), 0);
    const parts = [...o.stages, rest].map((took, i) => ({ took, i, name: s.stages[i] ?? "rest" }));
    bar.style.width = 100 * o.total / slowest + "%";
    for (const p of parts) {
      const i = make("i", undefined, "s" + p.i);
      i.style.flexGrow = p.took;
      bar.append(i);
    }
    const most = parts.filter(p => p.took * 20 >= o.total).sort((a, b) => b.took - a.took).slice(0, 4);
    stages.append(bar, make("small", most.map(p => `${p.name} ${seconds(p.took / 1e6)}`).join(", ")));
    tr.append(make("td", clock(o.at)), make("td", seconds(o.total / 1e6)), stages,
      make("td", o.sequence ? "#" + amount(o.sequence, "count") : "–"), make("td", String(o.status)));
    return tr;
  }));
}

function warnings(s) {
  say($("warned"), amount(s.warned, "count") + " since the start");
  const key = s.warned + ":" + s.warnings.length;
  if ($("warnings").dataset.key === key) return;
  $("warnings").dataset.key = key;
  $("warnings").replaceChildren(...s.warnings.map(w => {
    const tr = make("tr"), when = make("td", clock(w.at));
    when.title = new Date(w.at).toISOString();
    tr.append(when, make("td", w.level, w.level === "ERROR" ? "bad" : "warn"), make("td", w.text));
    return tr;
  }));
}

function head(s) {
  const ready = s.readyz?.ready === true, all = alerts(s);
  say($("state"), ready ? all.some(a => a.state !== "good") ? "ready, with alerts" : "ready" : "not ready",
    ready ? all.some(a => a.state !== "good") ? "warn" : "good" : "bad");
  document.title = (ready ? "" : "✕ ") + "clobd " + (s.about.listen[0] ?? "");
  say($("who"), `version ${s.about.version}, ${s.about.go}, chain ${s.about.chain}, ` +
    `trading at ${s.about.listen.join(", ")}, operated at ${s.about.admin}, data in ${s.about.data}`);
  list(all);
}

// list shows alerts.
function list(all) {
  const key = JSON.stringify(all.map(a => [a.text, a.state]));
  if ($("alerts").dataset.key === key) return;
  $("alerts").dataset.key = key;
  $("alerts").replaceChildren(...all.map(a => {
    const li = make("li", a.text, "alert " + a.state);
    if (a.name) li.append(nameOf(a.name));
    return li;
  }));
}

const token = "clobd.token"; // in sessionStorage
let built = false, heard = 0;

function show(s) {
  if (!built) {
    buildTiles();
    buildStages(s.stages);
    buildCards();
    built = true;
  }
  heard = Date.now();
  const old = s.now - s.at;
  document.body.classList.toggle("old", old > 5 * second);
  say($("foot"), s.at ? "Figures of " + clock(s.at) + (old > 5 * second ?
    `, ${seconds(old / 1000)} old: the node takes long to gather them` : ", each second") : "No figures yet");
  head(s);
  for (const update of updates) update(s);
  slowest(s);
  warnings(s);
}

async function ask() {
  const kept = sessionStorage.getItem(token);
  const answer = await fetch("page.json", {
    headers: kept ? { Authorization: "Bearer " + kept } : {},
    signal: AbortSignal.timeout(3 * second), // a node that hangs must not look well
  });
  const denied = answer.status === 401 || answer.status === 429;
  $("door").hidden = !denied;
  $("all").hidden = denied;
  if (denied) {
    say($("denied"), !kept ? "" : answer.status === 429 ? "Too many wrong tokens: wait ten seconds." :
      "That is not this node’s token.");
    say($("state"), "locked");
    sessionStorage.removeItem(token);
    return false;
  }
  if (!answer.ok) throw new Error("status " + answer.status);
  show(await answer.json());
  return true;
}

let timer = 0;
async function poll() {
  clearTimeout(timer);
  let on = true;
  try {
    if (!document.hidden) on = await ask();
  } catch (e) {
    say($("state"), heard ? `no answer for ${seconds((Date.now() - heard) / 1000)}` : "no answer", "bad");
    document.body.classList.add("old");
    document.title = "✕ clobd: no answer";
    list([{ text: "The node does not answer: the figures below are old.", state: "bad" }]);
  }
  if (on) timer = setTimeout(poll, second);
}

$("door").addEventListener("submit", event => {
  event.preventDefault();
  sessionStorage.setItem(token, $("token").value.trim());
  $("token").value = "";
  poll();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden && $("door").hidden) poll(); });
poll();
