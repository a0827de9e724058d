// Formats money, times and counts. With tabular digits their width stays the same.

export function money(usd) {
  if (usd == null) return "–";
  if (usd === 0) return "$0";
  if (usd < 0.000001) return "<$0.000001";
  if (usd < 0.01) return "$" + usd.toFixed(6);
  return "$" + usd.toFixed(usd < 1 ? 4 : 2);
}

/** What has no known price is never shown as free. */
export function priced(usd, unpriced) {
  if (!unpriced) return money(usd);
  return usd ? `${money(usd)} and more` : "unpriced";
}

export function seconds(s) {
  if (s == null) return "–";
  if (s < 0.0005) return "0 ms";
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 120) return `${s.toFixed(s < 10 ? 2 : 1)} s`;
  const whole = Math.round(s);
  if (whole < 7200) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${(s / 3600).toFixed(1)} h`;
}

export function count(n) {
  return n == null ? "–" : Math.round(n).toLocaleString("en");
}

export function percent(share, digits = 1) {
  return share == null ? "–" : `${(100 * share).toFixed(digits)}%`;
}

/** A number of unknown size, in short form. */
export function short(value) {
  if (value == null) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(1) : size >= 0.001 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
}

export function plural(n, one, many = one + "s") {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function characters(n) {
  if (n < 1000) return `${n} characters`;
  return n < 1e6 ? `${Math.round(n / 1000)} thousand characters` : `${(n / 1e6).toFixed(1)} million characters`;
}

/** "14:03:22" today, "12 May, 14:03" otherwise; in the reader's own time. */
export function moment(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return "–";
  const time = (withSeconds) =>
    at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(withSeconds && { second: "2-digit" }) });
  if (at.toDateString() === new Date().toDateString()) return time(true);
  const sameYear = at.getFullYear() === new Date().getFullYear();
  const day = at.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...(!sameYear && { year: "numeric" }) });
  return `${day}, ${time(false)}`;
}
