// Numbers, dates and names as people read them. Pure functions.

const plain = (digits) => new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const DIGITS = [0, 1, 2, 3].map(plain);

export const NONE = "–";

// 3 or 4 significant digits: "4.123", "41.20", "412.3", "4,123".
export function us(value) {
  if (!(value > 0)) return NONE;
  return DIGITS[value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0].format(value);
}

// As `us`, of a difference, with its sign.
export function usChange(value) {
  if (!Number.isFinite(value)) return NONE;
  return value === 0 ? "0" : `${value > 0 ? "+" : "−"}${us(Math.abs(value))}`;
}

// 0.042 -> "+4.2 %"
export function percentChange(share) {
  if (!Number.isFinite(share)) return NONE;
  const text = DIGITS[1].format(Math.abs(100 * share));
  return text === "0.0" ? "0.0 %" : `${share > 0 ? "+" : "−"}${text} %`;
}

export function percent(share, digits = 0) {
  return Number.isFinite(share) ? `${DIGITS[digits].format(100 * share)} %` : NONE;
}

export function count(value) {
  return DIGITS[0].format(Number(value ?? 0));
}

// "1 night", "2 nights", "2 classes"
export function counted(value, noun, plural = `${noun}s`) {
  return `${count(value)} ${Number(value) === 1 ? noun : plural}`;
}

export function speedup(factor) {
  return factor > 0 ? `${DIGITS[2].format(factor)}x` : NONE;
}

// 3 significant digits with an SI prefix: si(3.2e11, "FLOP/s") -> "320 GFLOP/s"
export function si(value, unit) {
  if (!(value > 0)) return NONE;
  const step = Math.max(0, Math.min(5, Math.floor(Math.log10(value) / 3)));
  return `${Number((value / 1000 ** step).toPrecision(3))} ${["", "k", "M", "G", "T", "P"][step]}${unit}`;
}

export function bytes(value) {
  const number = Number(value ?? 0);
  if (number < 1024) return `${number} B`;
  const step = Math.min(4, Math.floor(Math.log2(number) / 10));
  return `${Number((number / 1024 ** step).toPrecision(3))} ${["B", "KiB", "MiB", "GiB", "TiB"][step]}`;
}

// "95.500s", protobuf's duration -> 95.5; NaN where there is none
export function seconds(duration) {
  return typeof duration === "string" ? parseFloat(duration) : NaN;
}

// 26 -> "26 s", 71 -> "1 min 11 s", 7500 -> "2 h 5 min"
export function durationText(value) {
  if (!Number.isFinite(value)) return NONE;
  const whole = Math.max(0, Math.round(value));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min${whole % 60 ? ` ${whole % 60} s` : ""}`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
  return counted(Math.floor(hours / 24), "day");
}

// "15 h ago"
export function ago(timestamp, now = Date.now()) {
  const past = (now - Date.parse(timestamp)) / 1000;
  if (!Number.isFinite(past)) return NONE;
  if (past < 5) return "now";
  return `${durationText(past).split(" ").slice(0, 2).join(" ")} ago`;
}

const two = (number) => String(number).padStart(2, "0");

// "2026-11-23" in the reader's zone.
export function date(timestamp) {
  const at = new Date(timestamp);
  if (Number.isNaN(at.getTime())) return NONE;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

// "UTC", "UTC+1", "UTC-3:30": of the reader at that moment.
export function zone(timestamp) {
  const minutes = -new Date(timestamp).getTimezoneOffset();
  if (!minutes) return "UTC";
  const size = Math.abs(minutes);
  return `UTC${minutes > 0 ? "+" : "-"}${Math.floor(size / 60)}${size % 60 ? `:${two(size % 60)}` : ""}`;
}

// "2026-11-23 02:14 UTC"
export function moment(timestamp) {
  const at = new Date(timestamp);
  if (Number.isNaN(at.getTime())) return NONE;
  return `${date(timestamp)} ${two(at.getHours())}:${two(at.getMinutes())} ${zone(timestamp)}`;
}

// "STATE_NOT_TIMED" -> "not timed", without the enum's own name
export function enumWord(value, prefix) {
  return (value ?? "").replace(prefix, "").toLowerCase().replaceAll("_", " ");
}

// "VERDICT_WRONG_RESULT" -> "WRONG_RESULT": verdicts and outcomes are written so everywhere
export function enumName(value, prefix) {
  return (value ?? "").replace(prefix, "");
}

export function policyWord(policy) {
  return { POLICY_COLD: "cold", POLICY_L2_WARM: "l2-warm" }[policy] ?? "hot";
}

export const policyWords = ["hot", "l2-warm", "cold"];

// As an address has it: the default is left out.
export function policyQuery(policy) {
  return policyWord(policy) === "hot" ? "" : policyWord(policy);
}

// "l2-warm" -> "POLICY_L2_WARM"
export function policyName(word) {
  return `POLICY_${word.toUpperCase().replaceAll("-", "_")}`;
}

// A hash as people tell it from others: its first 8 digits.
export function short(hash) {
  return /^[0-9a-f]{16,}$/i.test(hash ?? "") ? hash.slice(0, 8) : (hash ?? "");
}

export function geometricMean(values) {
  if (values.length === 0) return NaN;
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}
