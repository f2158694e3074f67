// What several pages show in the same way: states, dates, links, errors, empty lists.
import { h } from "./dom.js";
import { ago, enumName, moment, NONE, percentChange, policyQuery, policyWord, short, us } from "./format.js";
import { addressOf } from "./router.js";
import { variantChange } from "./variants.js";

// Sign and colour of a word; the word is always there, so that neither has to be seen.
const KINDS = {
  SLOWER: ["bad", "▲"],
  FAILED: ["bad", "✕"],
  FASTER: ["good", "▼"],
  SUCCEEDED: ["good", "✓"],
  NEW: ["good", "+"],
  OK: ["good", "✓"],
  SAME: ["quiet", "="],
  AMBIGUOUS: ["warn", "?"],
  UNCLEAR: ["warn", "?"],
  MOVED: ["info", "⇄"],
  SKIPPED: ["warn", "…"],
  NOT_TIMED: ["warn", "…"],
  CANCELLED: ["quiet", "–"],
  RUNNING: ["info", "▶"],
  QUEUED: ["quiet", "…"],
  ONLY_FROM: ["quiet", "–"],
  ONLY_TO: ["quiet", "+"],
};

const WORDS = { NOT_TIMED: "NOT TIMED", ONLY_FROM: "ONLY BEFORE", ONLY_TO: "ONLY AFTER" };

export function badge(name) {
  const [kind, sign] = KINDS[name] ?? [name.startsWith("INFEAS") || name === "LOST" ? "quiet" : "bad", ""];
  return h("span", { class: `badge ${kind}` }, sign && h("span", { "aria-hidden": "true" }, `${sign} `), WORDS[name] ?? name);
}

export const stateBadge = (trend) => badge(enumName(trend.state, "STATE_"));

export function when(timestamp) {
  if (!timestamp) return NONE;
  return h("time", { datetime: timestamp, title: ago(timestamp) }, moment(timestamp));
}

export function day(timestamp) {
  if (!timestamp) return NONE;
  return h("time", { datetime: timestamp, title: moment(timestamp) }, moment(timestamp).slice(0, 10));
}

// A problem breaks at its dots where there is no room.
export function problemText(text) {
  return text.split(".").flatMap((part, index) => (index ? [h("wbr"), `.${part}`] : [part]));
}

export function problemLink(text, deviceClass, policy) {
  return h("a", { href: addressOf("problem", text, { class: deviceClass, policy: policyQuery(policy) }), class: "problem" }, problemText(text));
}

export function jobLink(name, text) {
  return h("a", { href: addressOf("job", name) }, text ?? name);
}

export function className(trend) {
  return trend.classAlias || short(trend.deviceClass) || trend.deviceId || NONE;
}

export function classAndPolicy(trend) {
  return [className(trend), h("span", { class: "muted" }, ` · ${policyWord(trend.policy)}`), trend.pinned ? h("span", { class: "badge info" }, "pinned") : null];
}

// A variant breaks behind its commas.
export function variantCode(text) {
  return h("code", { class: "variant" }, (text ?? "").split(",").flatMap((part, index) => (index ? [",", h("wbr"), part] : [part])));
}

export function changeCell(change) {
  const kind = change > 0 ? "bad" : change < 0 ? "good" : "";
  return h("span", { class: `change ${kind}` }, percentChange(change));
}

// "driver 580.1 → 590.2"; of variants only the parameters that differ.
export function changeWords({ what, from, to }) {
  if (what === "variant") return `variant ${variantChange(from, to)}`;
  return `${what} ${short(from) || "unknown"} → ${short(to) || "unknown"}`;
}

export function changeList(changes, none) {
  if (!changes?.length) return h("span", { class: "muted" }, none);
  return h("ul", { class: "plain" }, changes.map((change) => h("li", {}, changeWords(change))));
}

export function interval(timing) {
  if (!(timing?.medianUs > 0)) return NONE;
  return h("span", { title: `95 % interval of the median: ${us(timing.lowUs)} to ${us(timing.highUs)} us` }, us(timing.medianUs));
}

// Says what to do next: `command` is an element of commands.js.
export function empty(text, command) {
  return h("div", { class: "empty" }, h("p", {}, text), command);
}

export function failure(error) {
  return h("div", { class: "failure", role: "alert" }, h("strong", {}, "The server refused this: "), error.message);
}

export function loading() {
  return h("p", { class: "loading", role: "status" }, "Loading …");
}

// Names and values, as a list of descriptions.
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== NONE);
  return h("dl", { class: "facts" }, shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

export function section(id, title, ...content) {
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), content);
}
