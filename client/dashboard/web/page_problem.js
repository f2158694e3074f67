// One problem: its time by night, what changed when, what was served and why.
import { get, list, repeat } from "./api.js";
import { commandLine, historyCommand, trendCommands, tuneCommand } from "./commands.js";
import { h, update } from "./dom.js";
import { counted, percentChange, policyName, policyQuery, policyWord, short, si, speedup, us } from "./format.js";
import { marksOf } from "./nights.js";
import { changeCell, changeList, className, empty, facts, failure, interval, loading, problemText, section, stateBadge, variantCode, when } from "./parts.js";
import { marksTable, nightsFigure } from "./problem_chart.js";
import { explanation, incumbentSection, recipeFold, servedOf, tieSection } from "./problem_served.js";
import { addressOf, keepQuery } from "./router.js";

const SPANS = 365;
const RANGES = [["", "all nights"], ["365", "the last year"], ["90", "the last 90 days"], ["30", "the last 30 days"], ["7", "the last 7 days"]];

function choose(trends, query) {
  const policy = policyName(query.policy || "hot");
  const of = (trend) => !query.class || [trend.classAlias, trend.deviceClass, trend.deviceId].includes(query.class);
  return trends.find((trend) => of(trend) && trend.policy === policy) ?? trends.find(of) ?? trends[0];
}

// A class' alias names all of its cards, but only while one is here; then the card itself is asked about.
const deviceOf = (trend) => trend.classAlias || trend.latestDeviceId || trend.deviceId;

async function load(problem, query, days, signal) {
  const [{ items: trends }, { items: baselines }] = await Promise.all([
    list("trends", "trends", { problem }, signal),
    list("baselines", "baselines", { problem }, signal),
  ]);
  const trend = choose(trends, query);
  if (!trend) return { trends, trend };
  // Of the last night, so that the address stays the same and the answer's ETag holds.
  const end = Date.parse(trend.latestTime ?? trend.promoteTime);
  const start = days ? new Date(end - days * 864e5).toISOString() : "";
  const device = deviceOf(trend);
  const [nights, history] = await Promise.all([
    get("retimings", { problem, device_id: device, policy: trend.policy, spans: SPANS, start_time: start, page_size: 1000 }, signal),
    list("incumbents", "incumbents", { problem, device_id: device, history: true, page_size: 200 }, signal, 1),
  ]);
  const incumbents = history.items.filter((incumbent) => incumbent.policy === trend.policy && (incumbent.deviceClass ?? trend.deviceClass) === trend.deviceClass);
  const served = servedOf(incumbents);
  const explained = served?.trial?.name ? await get("explain", { trial: served.trial.name }, signal).catch(() => null) : null;
  const cards = new Set([trend.deviceId, trend.latestDeviceId, ...incumbents.map((incumbent) => incumbent.deviceId)]);
  return {
    trends,
    trend,
    incumbents,
    explained,
    retimings: (nights.retimings ?? []).filter((retiming) => retiming.dependencies?.deviceFingerprint === trend.deviceClass),
    baselines: baselines.filter((baseline) => baseline.policy === trend.policy && cards.has(baseline.deviceId)),
  };
}

function tabs(trends, current) {
  if (trends.length < 2) return null;
  return h("ul", { class: "tabs", "aria-label": "Device classes and policies" }, trends.map((trend) =>
    h("li", {}, h("a", { href: addressOf("problem", trend.problemText, { class: trend.classAlias || trend.deviceClass, policy: policyQuery(trend.policy) }), "aria-current": trend === current ? "page" : null }, `${className(trend)} · ${policyWord(trend.policy)} `, stateBadge(trend))),
  ));
}

function head(trend, baselines) {
  const compared = trend.latest && trend.reference;
  const moved = trend.state === "STATE_MOVED";
  const confirmed = ["STATE_SLOWER", "STATE_FASTER"].includes(trend.state);
  const reached = trend.served?.medianUs > 0 && trend.flops > 0 ? `${si((trend.flops / trend.served.medianUs) * 1e6, "FLOP/s")}, ${si((trend.bytes / trend.served.medianUs) * 1e6, "B/s")}` : "";
  return [
    h("p", { class: "verdict" }, stateBadge(trend), " ", moved ? `another card timed it: ${us(trend.latest.medianUs)} us there say nothing of the ${us(trend.reference.medianUs)} us before` : compared ? [confirmed ? changeCell(trend.change ?? 0) : percentChange(trend.change ?? 0), ` against the reference: ${us(trend.reference.medianUs)} → ${us(trend.latest.medianUs)} us`] : "not timed again since it was promoted",
      trend.since ? [", since ", when(trend.since), ` (${counted(trend.nights ?? 0, "night")})`] : "",
      trend.unsettledNights ? `; ${counted(trend.unsettledNights, "night")} after that settled nothing` : ""),
    facts([
      ["class", `${className(trend)}${trend.classAlias ? ` (${short(trend.deviceClass)})` : ", not on this host"}, policy ${policyWord(trend.policy)}`],
      ["served time", [interval(trend.served), ` us (${us(trend.served?.lowUs)} to ${us(trend.served?.highUs)})`]],
      ["reference", trend.reference && [`${us(trend.reference.medianUs)} us, `, when(trend.referenceTime)]],
      ["last timed", trend.latestTime && [`${us(trend.latest?.medianUs)} us, `, when(trend.latestTime), ` on ${trend.latestDeviceId}`]],
      ["promoted", when(trend.promoteTime)],
      ["reaches", reached],
      ["against baselines", baselines.map((baseline) => h("div", {}, `${speedup(baseline.medianUs / trend.served?.medianUs)} ${baseline.contender}`))],
      ["changed when this began", trend.changes?.length ? changeList(trend.changes) : null],
      ["variant", variantCode(trend.variant)],
    ]),
  ];
}

function neverTuned(problem) {
  return empty(`${problem} is not served here.`, commandLine(tuneCommand(problem), "tune it"));
}

export function show({ root, subject: problem, query, signal }) {
  const choice = { days: RANGES.some(([days]) => days === query.days) ? query.days : "", baselines: query.baselines === "1" };
  const body = h("div", {}, loading());
  root.append(
    h("p", { class: "crumbs" }, h("a", { href: "#/health" }, "Health"), " / problem"),
    h("h1", { class: "problem" }, problemText(problem)),
    body,
  );
  if (!problem) {
    update(body, empty("The address names no problem; Health lists them.", null));
    return;
  }
  let data = null;
  let reload = null;

  const remember = () => keepQuery({ ...query, days: choice.days, baselines: choice.baselines ? "1" : "" });
  const select = () =>
    h("select", { "data-key": "days", onchange: (event) => { choice.days = event.target.value; remember(); reload(); } },
      RANGES.map(([days, words]) => h("option", { value: days, selected: days === choice.days }, words)));
  const check = () =>
    h("input", { type: "checkbox", "data-key": "baselines", checked: choice.baselines, onchange: (event) => { choice.baselines = event.target.checked; remember(); draw(); } });

  const nights = () => {
    if (data.retimings.length === 0) {
      return empty("It was not timed again in these nights; every play-off of what is served, in a tuning or a sweep, adds a time.", commandLine(historyCommand(problem, deviceOf(data.trend), data.trend.policy)));
    }
    const first = Date.parse(data.retimings.reduce((a, b) => (a.finishTime < b.finishTime ? a : b)).finishTime);
    const marks = marksOf(data.retimings, data.incumbents).filter((mark) => Date.parse(mark.time) >= first);
    return [
      nightsFigure({ problem, retimings: data.retimings, reference: data.trend.reference?.medianUs, baselines: data.baselines, marks, withBaselines: choice.baselines }),
      h("h3", {}, "What changed"),
      marksTable(marks),
    ];
  };

  const draw = () => {
    if (!data.trend) return update(body, neverTuned(problem));
    const { trend, trends, incumbents, baselines, explained } = data;
    const device = deviceOf(trend);
    const served = servedOf(incumbents);
    return update(
      body,
      tabs(trends, trend),
      h("p", {}, h("a", { href: addressOf("space", problem, { class: trend.classAlias || trend.deviceClass }) }, "The space of its variants"), " · ", h("a", { href: addressOf("jobs", "", { problem }) }, "Its jobs")),
      head(trend, baselines),
      section("nights", "Time by night",
        h("div", { class: "controls" }, h("label", {}, "Nights", select()), h("label", { class: "check" }, check(), "scale to the baselines, too")),
        nights()),
      explanation(explained, trend, device),
      incumbentSection(incumbents, device, trend),
      tieSection(served),
      recipeFold(served, signal),
      section("commands", "Commands", trendCommands(trend).map(({ label, text }) => commandLine(text, label))),
    );
  };

  let turn = null;
  reload = () => {
    turn?.abort();
    turn = new AbortController();
    repeat(60, () => load(problem, query, Number(choice.days), turn.signal), (loaded) => { data = loaded; draw(); }, (error) => update(body, failure(error)), turn.signal);
  };
  signal.addEventListener("abort", () => turn?.abort());
  reload();
}

