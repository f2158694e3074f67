// Health: the last sweep of each device class, with the rows that somebody should look at.
import { get, list } from "./api.js";
import { commandLine } from "./commands.js";
import { fold, h } from "./dom.js";
import { ago, count, counted, enumName, NONE, percentChange, short, us } from "./format.js";
import { deviceClasses, OUTCOMES, rowChange, rowsByOutcome } from "./health.js";
import { badge, empty, jobLink, problemLink, section, when } from "./parts.js";
import { table } from "./table.js";

const APART = ["SLOWER", "FAILED", "AMBIGUOUS", "SKIPPED"];
// Reports are large: no more of them are read than this to find the last one of each class.
const MOST_REPORTS = 4;

export function classesOf({ devices, trends }) {
  const names = new Map();
  for (const trend of trends) names.set(trend.deviceClass, trend.classAlias);
  for (const device of devices) names.set(device.fingerprint, device.classAlias);
  return { of: deviceClasses(devices, trends), names };
}

// Of a card; a fleet's is called "hosts/gpu7-1a2b3c4d/devices/cuda:0".
const classOf = (classes, card) => classes.of.get((card ?? "").split("/devices/").pop());

// A report's class: that of its rows' cards. Several cards of one sweep may be of several classes.
function sweptClasses(report, classes) {
  const cards = (report.deviceId ?? "").split(",").concat((report.rows ?? []).map((row) => row.deviceId));
  return [...new Set(cards.map((card) => classOf(classes, card)).filter(Boolean))];
}

// [{operation, classes}]: the newest finished sweeps that between them cover every class, one for each. Of a finished one
// the report never changes, so it is asked for once.
const reports = new Map();
export async function latestSweeps(classes, signal) {
  const query = { kind: "JOB_KIND_SWEEP", view: "OPERATION_VIEW_BASIC", page_size: 20 };
  const { items } = await list("operations", "operations", query, signal, 1);
  const missing = new Set(classes.names.keys());
  const found = [];
  for (const { name } of items.filter((operation) => operation.done).slice(0, MOST_REPORTS)) {
    if (!reports.has(name)) {
      const operation = await get("operation", { name }, signal);
      delete operation.sweep?.markdown;
      reports.set(name, operation);
    }
    const operation = reports.get(name);
    const swept = operation.sweep ? sweptClasses(operation.sweep, classes) : [];
    const fresh = swept.filter((each) => missing.has(each));
    if (fresh.length === 0 && (swept.length || found.length)) continue;
    fresh.forEach((each) => missing.delete(each));
    found.push({ operation, classes: fresh });
    if (missing.size === 0) break;
  }
  return found;
}

function rowsTable(name, rows, classes) {
  return table({
    caption: `Rows of ${name}`,
    rows: rows.slice().sort((a, b) => APART.indexOf(enumName(a.outcome, "OUTCOME_")) - APART.indexOf(enumName(b.outcome, "OUTCOME_"))),
    columns: [
      { label: "Problem", class: "wide", cell: (row) => problemLink(row.problem, classOf(classes, row.deviceId)), sort: (row) => row.problem },
      { label: "Outcome", cell: (row) => badge(enumName(row.outcome, "OUTCOME_")), sort: (row) => row.outcome },
      { label: "Before → after, us", number: true, cell: (row) => (row.beforeUs || row.afterUs ? `${us(row.beforeUs)} → ${us(row.afterUs)}` : NONE), sort: (row) => row.afterUs ?? 0 },
      { label: "Change", number: true, cell: (row) => percentChange(rowChange(row)), sort: rowChange },
      { label: "Detail", class: "text", optional: true, cell: (row) => row.detail ?? "" },
    ],
  });
}

function one({ operation, classes: swept }, classes) {
  const report = operation.sweep ?? {};
  const groups = rowsByOutcome(report.rows);
  const apart = APART.flatMap((outcome) => groups[outcome] ?? []);
  const names = swept.map((each) => classes.names.get(each) || short(each)).join(", ") || report.deviceId || "no card";
  const failed = operation.error ? h("p", { class: "failure" }, operation.error.message) : null;
  return h(
    "article",
    { class: "card" },
    h("h3", {}, names, h("span", { class: "muted" }, " · "), jobLink(operation.name, report.title || operation.title || operation.name)),
    h("p", {}, "ended ", when(operation.endTime), ` (${ago(operation.endTime)})`, operation.state === "STATE_SUCCEEDED" ? null : [" ", badge(enumName(operation.state, "STATE_"))]),
    failed,
    h("ul", { class: "counts" }, OUTCOMES.filter((outcome) => groups[outcome]).map((outcome) => h("li", {}, h("strong", {}, count(groups[outcome].length)), " ", badge(outcome)))),
    apart.length
      ? fold(`sweep/${operation.name}`, `${counted(apart.length, "row")} to look at`, () => rowsTable(operation.name, apart, classes), apart.length <= 12)
      : h("p", { class: "muted" }, "No row is SLOWER, FAILED, AMBIGUOUS or SKIPPED."),
  );
}

export function sweepSection(sweeps, classes) {
  const content = sweeps.length
    ? h("div", { class: "cards" }, sweeps.map((each) => one(each, classes)))
    : empty("No sweep has ended yet. A nightly one times everything again and fills this page.", commandLine("attune sweep nightly.textproto", "sweep a file of problems"));
  return section("sweeps", "Last sweep of each device class", content);
}
