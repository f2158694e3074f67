// The landing page: is anything slower than it was, since when, and what changed then.
import { get, list, repeat } from "./api.js";
import { commandLine, trendCommands } from "./commands.js";
import { fold, h, update } from "./dom.js";
import { ago, count, counted, percentChange, usChange } from "./format.js";
import { deviceClasses, LATELY_DAYS, lostUs, sortTrends } from "./health.js";
import { baselineSection } from "./health_baselines.js";
import { classesOf, latestSweeps, sweepSection } from "./health_sweeps.js";
import { changeCell, changeList, classAndPolicy, day, empty, failure, interval, loading, problemLink, section, when } from "./parts.js";
import { sparkline } from "./sparkline.js";
import { table } from "./table.js";

const POINTS = 60;
const DRAWN = ["STATE_SLOWER", "STATE_FASTER", "STATE_AMBIGUOUS", "STATE_MOVED"];

const keyOf = (trend) => `${trend.deviceClass} ${trend.policy} ${trend.problemText}`;

// The curves of what needs a look come with the page; those of the rest when their table is opened.
async function loadTrends(signal) {
  const [all, drawn] = await Promise.all([
    list("trends", "trends", {}, signal),
    list("trends", "trends", { points: POINTS, states: DRAWN }, signal),
  ]);
  const points = new Map(drawn.items.map((trend) => [keyOf(trend), trend.points]));
  return all.items.map((trend) => ({ ...trend, points: points.get(keyOf(trend)) }));
}

function spark(trend) {
  return sparkline(trend.points, { referenceUs: trend.reference?.medianUs, since: trend.since, label: trend.problemText }) ?? "";
}

function commandsOf(trend) {
  return fold(`commands/${keyOf(trend)}`, "Commands that reproduce it", () =>
    trendCommands(trend).map(({ label, text }) => commandLine(text, label, `${keyOf(trend)} ${text}`)),
  );
}

function sinceCell(trend) {
  if (!trend.since) return "";
  const unsettled = trend.unsettledNights ? h("div", { class: "muted" }, `${counted(trend.unsettledNights, "night")} after that unsettled`) : null;
  return [day(trend.since), h("div", { class: "muted" }, `${counted(trend.nights ?? 0, "night")}, ${ago(trend.since)}`), unsettled];
}

const problemColumn = { label: "Problem", class: "wide", cell: (trend) => [problemLink(trend.problemText, trend.classAlias || trend.deviceClass, trend.policy), h("div", {}, classAndPolicy(trend))], sort: (trend) => trend.problemText };
const changeColumn = { label: "Change", number: true, cell: (trend) => [changeCell(trend.change ?? 0), h("div", { class: "muted" }, `${usChange(lostUs(trend))} us`)], sort: (trend) => trend.change ?? 0 };
// Not a confirmed change: without the colours of one.
const unsettledColumn = { ...changeColumn, cell: (trend) => [percentChange(trend.change ?? 0), h("div", { class: "muted" }, `${usChange(lostUs(trend))} us`)] };
const timesColumn = { label: "Before → now, us", number: true, cell: (trend) => [interval(trend.reference), " → ", h("strong", {}, interval(trend.latest))], sort: lostUs };
const sinceColumn = { label: "Since", cell: sinceCell, sort: (trend) => trend.since ?? "" };
const changesColumn = { label: "What changed then", cell: (trend) => changeList(trend.changes, "nothing that is recorded"), sort: (trend) => (trend.changes ?? []).map(({ what }) => what).join() };
const sparkColumn = { label: "Nights", class: "nights", cell: spark };
const latestColumn = { label: "Last timed", cell: (trend) => (trend.latestTime ? when(trend.latestTime) : "never since it was promoted"), sort: (trend) => trend.latestTime ?? "" };
const servedColumn = { label: "Served, us", number: true, cell: (trend) => interval(trend.served), sort: (trend) => trend.served?.medianUs ?? 0 };

const CHANGED = [problemColumn, changeColumn, timesColumn, sinceColumn, changesColumn, sparkColumn];
const GROUPS = [
  { name: "AMBIGUOUS", title: "Ambiguous", note: "The intervals overlap, or another process was on the card: no night has settled whether these changed.", columns: [problemColumn, unsettledColumn, timesColumn, { label: "Unsettled", number: true, cell: (trend) => counted(trend.unsettledNights ?? 0, "night"), sort: (trend) => trend.unsettledNights ?? 0 }, latestColumn, sparkColumn] },
  { name: "MOVED", title: "Moved to another card", note: "Timed on another card of the class since: its times are not comparable with those before, and later nights are compared with that card's own.", columns: CHANGED.toSpliced(1, 1) },
  { name: "NOT_TIMED", title: "Not timed lately", note: `Served, but never timed again since, or passed over by its class' nights for more than ${LATELY_DAYS} days: add these problems to a sweep.`, columns: [problemColumn, servedColumn, latestColumn] },
  { name: "FASTER", title: "Faster", note: "Confirmed in cycles.", columns: CHANGED },
  { name: "SAME", title: "Steady", note: "Within the regression threshold.", columns: [problemColumn, unsettledColumn, timesColumn, latestColumn] },
];

function summary(trends, groups) {
  const slower = groups.SLOWER.length;
  const classes = new Set(trends.map((trend) => trend.deviceClass)).size;
  const last = trends.map((trend) => trend.latestTime ?? "").reduce((a, b) => (Date.parse(b) > (Date.parse(a) || 0) ? b : a), "");
  const tiles = GROUPS.map(({ name, title }) =>
    h("li", {}, h("button", { type: "button", class: "tile", "data-key": `tile/${name}`, disabled: groups[name].length === 0, onclick: () => openGroup(name) }, h("strong", {}, count(groups[name].length)), h("span", {}, title))),
  );
  return h(
    "div",
    { class: "summary" },
    h(
      "div",
      { class: `headline ${slower ? "bad" : "good"}` },
      h("p", { class: "big" }, h("span", { "aria-hidden": "true" }, slower ? "▲ " : "✓ "), h("strong", { id: "regressions" }, count(slower)), slower === 1 ? " confirmed regression" : " confirmed regressions"),
      h("p", {}, `of ${counted(trends.length, "served problem")} on ${counted(classes, "device class", "device classes")}; last timed `, last ? [when(last), ` (${ago(last)})`] : "never"),
    ),
    h("ul", { class: "tiles" }, tiles),
  );
}

function openGroup(name) {
  const details = document.querySelector(`details[data-key="group/${name}"]`);
  if (!details) return;
  details.fill();
  details.open = true;
  details.scrollIntoView({ block: "start" });
  details.querySelector("summary").focus({ preventScroll: true });
}

function regressions(rows, orders) {
  if (rows.length === 0) return h("p", {}, "Nothing that is served is slower than it was, beyond the threshold and confirmed in cycles.");
  return table({ caption: "Confirmed regressions, what lost most first", key: "SLOWER", columns: CHANGED, rows, order: orders.SLOWER, after: commandsOf, rowClass: () => "slower" });
}

function group({ name, title, note, columns }, rows, orders) {
  if (rows.length === 0) return null;
  return fold(
    `group/${name}`,
    [h("span", { class: "group-title" }, title), " ", h("span", { class: "counter" }, count(rows.length))],
    () => [h("p", { class: "muted" }, note), table({ caption: title, key: name, columns, rows, order: orders[name], after: name === "SAME" ? null : commandsOf })],
    name !== "SAME" && rows.length <= 8,
  );
}

function nothingServed() {
  return empty(
    "Nothing is served yet, so there is nothing to watch. Tune a problem; a nightly sweep then times it again.",
    [commandLine("attune tune b2.h8.q512.d64.f16", "tune a problem"), commandLine("attune sweep nightly.textproto", "tune a file of problems, and time again what is served")],
  );
}

export function show({ root, signal }) {
  const top = h("div", {}, loading());
  const sweeps = h("div");
  const baselines = h("div");
  const groupsAt = h("div", { class: "groups" });
  root.append(h("h1", {}, "Health"), top, sweeps, baselines, groupsAt);
  const orders = Object.fromEntries(["SLOWER", ...GROUPS.map(({ name }) => name)].map((name) => [name, {}]));

  const showTrends = (trends) => {
    if (trends.length === 0) {
      update(top, nothingServed());
      for (const part of [groupsAt, baselines]) part.replaceChildren();
      return;
    }
    const groups = sortTrends(trends);
    update(top, summary(trends, groups), section("slower", "Confirmed regressions", regressions(groups.SLOWER, orders)));
    update(groupsAt, h("h2", {}, "Everything else that is served"), GROUPS.map((each) => group(each, groups[each.name], orders)));
  };
  const failed = (error) => update(top, failure(error));

  // Trends first: they are what the page is for. The rest follows, and may fail by itself.
  let known = { trends: [], devices: [] };
  const showRest = (data) => {
    update(sweeps, sweepSection(data.sweeps, classesOf(known)));
    update(baselines, known.trends.length ? baselineSection(known.trends, data.baselines, deviceClasses(known.devices, known.trends)) : []);
  };
  repeat(
    30,
    async () => {
      const trends = await loadTrends(signal);
      const first = known.trends.length === 0;
      known.trends = trends;
      if (first) loadRest();
      return trends;
    },
    showTrends,
    failed,
    signal,
  );
  let started = false;
  const loadRest = () => {
    if (started) return;
    started = true;
    repeat(
      60,
      async () => {
        const [devices, recorded] = await Promise.all([get("devices", {}, signal), list("baselines", "baselines", {}, signal)]);
        known.devices = devices.devices ?? [];
        return { devices, baselines: recorded.items, sweeps: await latestSweeps(classesOf(known), signal) };
      },
      showRest,
      (error) => update(sweeps, failure(error)),
      signal,
    );
  };
}

