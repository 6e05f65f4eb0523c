// What needs somebody's eye now: what /readyz says, and figures beyond their bounds.
import { amount, each, seconds } from "./units.js";

// Each rule has a metric, the state it makes, and a text if the figure is beyond its bound. It gets
// the value, its growth each second in the last 10 s, and all figures.
const rules = [
  ["clobd_disk_state", "warn", v => v === 1 && "The disk is nearly full."],
  ["clobd_disk_state", "bad", v => v > 1 && "The disk is full: only cancels are taken."],
  ["clobd_journal_oldest_unsynced_seconds", "bad", v => v > 2 && `The disk has not synced for ${seconds(v)}.`],
  ["clobd_sequencer_ring_depth", "bad", (v, _, all) => {
    const slots = all.clobd_sequencer_ring_slots?.[0] ?? 8192;
    return v > slots / 2 && `The ring is more than half full: ${amount(v, "count")} commands wait.`;
  }],
  ["clobd_http_busy_total", "warn", (_, grows) => grows > 0 && `Writes are refused as busy: ${each(grows)}.`],
  ["clobd_http_panics_total", "bad", (_, grows) => grows > 0 && "A request made its handler panic: a bug. The log has it."],
  ["clobd_index_held", "bad", v => v > 0 && "The index does not move."],
  ["clobd_index_lag_commands", "warn", v => v > 20000 && `The index lags by ${amount(v, "count")} commands.`],
  ["clobd_follower_lag_commands", "warn", v => v > 4e6 && `The follower lags by ${amount(v, "count")} commands.`],
  ["clobd_checkpoint_failures_total", "warn", (_, grows) => grows > 0 && "A checkpoint has failed."],
  ["clobd_journal_background_failures_total", "bad", (_, grows) => grows > 0 && "Work of the journal on the disk has failed."],
  ["clobd_index_background_failures_total", "warn", (_, grows) => grows > 0 && "Work of the index on the disk has failed."],
  ["clobd_scrub_damaged", "bad", v => v > 0 && "The last scrub found damage: clobd scrub tells where."],
];

// reasons are what /readyz says is wrong: texts, or objects that say what and by which metric.
function reasons(readyz, ready) {
  const found = new Map();
  for (const member of ["reasons", "why", "warnings"]) {
    const state = ready || member === "warnings" ? "warn" : "bad";
    for (const r of [readyz?.[member] ?? []].flat()) {
      const text = typeof r === "string" ? r : String(r.what ?? JSON.stringify(r));
      if (!found.has(text)) found.set(text, { text, state, name: r.metric ?? "/readyz" });
    }
  }
  return [...found.values()];
}

// alerts returns what is wrong, the worst first, or one entry that says that nothing is.
export function alerts(sheet) {
  const { readyz, figures } = sheet, ready = readyz?.ready === true;
  const found = reasons(readyz, ready);
  if (!ready && found.length === 0) {
    found.push({ text: "The node is not ready: it starts or stops.", state: "bad", name: "/readyz" });
  }
  if (readyz?.checkpoint?.error) {
    found.push({ text: "Checkpoint: " + readyz.checkpoint.error, state: "warn", name: "/readyz" });
  }
  for (const [name, state, test] of rules) {
    const f = figures[name], text = f && test(f[0], f[1], figures);
    if (!text) continue;
    const told = found.find(a => a.name === name);
    if (!told) found.push({ text, state, name });
    else if (state === "bad") told.state = state;
  }
  if (sheet.about.durability !== "fsync") {
    found.push({ text: "Answers come before the sync and can be lost: for measuring only.", state: "warn",
      name: "--durability" });
  }
  const recent = sheet.warnings.filter(w => sheet.now - w.at < 60000);
  const errors = recent.some(w => w.level === "ERROR");
  if (recent.length > 0) {
    found.push({ text: `The log has ${recent.length} new ${recent.length > 1 ? "lines" : "line"} below: ` +
      recent[0].text.slice(0, 120) + (recent[0].text.length > 120 ? " …" : ""), state: errors ? "bad" : "warn", name: "warnings of the last minute" });
  }
  found.sort((a, b) => (a.state === "bad" ? 0 : 1) - (b.state === "bad" ? 0 : 1));
  return found.length ? found : [{ text: "No alerts.", state: "good" }];
}
