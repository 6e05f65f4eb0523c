// How figures are written.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const digits = v => v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2);

// seconds writes a time with its unit: 4.10 µs, 12.0 ms, 3 h 5 min.
export function seconds(v) {
  if (!(v > 0)) return "0 s";
  if (v < 1e-3) return digits(v * 1e6) + " µs";
  if (v < 1) return digits(v * 1e3) + " ms";
  if (v < 60) return digits(v) + " s";
  const minutes = Math.floor(v / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
  if (hours === 0) return `${minutes} min ${Math.floor(v % 60)} s`;
  return days === 0 ? `${hours} h ${minutes % 60} min` : `${days} d ${hours % 24} h`;
}

function bytes(v) {
  let unit = 0;
  for (; v >= 1024 && unit < 4; unit++) v /= 1024;
  return (unit === 0 ? whole.format(v) : digits(v)) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][unit];
}

// amount writes a figure of a unit: count, bytes, seconds, rate.
export function amount(v, unit) {
  if (unit === "bytes") return bytes(v);
  if (unit === "seconds") return seconds(v);
  if (unit === "rate") return v >= 10 || v === 0 ? whole.format(v) : digits(v);
  return whole.format(v);
}

// each writes a rate.
export const each = v => amount(v, "rate") + " /s";

// clock writes the time of day of unix milliseconds.
export const clock = ms => new Date(ms).toTimeString().slice(0, 8);

// names are the series of a metric that have counted anything, with their one label.
export function names(figures, metric) {
  return Object.keys(figures).filter(name => name.startsWith(metric + "{")).map(name => ({
    name, value: figures[name][0], label: name.slice(metric.length + 1, -1).replace(/^\w+="|"$/g, ""),
  }));
}
