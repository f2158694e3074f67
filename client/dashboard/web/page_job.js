// One operation: what it does or did, and what came of it.
import { get, list, repeat } from "./api.js";
import { cancelCommand, commandLine, watchCommand } from "./commands.js";
import { fold, h, update } from "./dom.js";
import { count, counted, enumName, percent, percentChange, speedup, us } from "./format.js";
import { OUTCOMES, rowChange } from "./health.js";
import { bestCurve, progressBar, progressFacts, verdictMix } from "./job_parts.js";
import { mergeTrials, verdictCounts } from "./jobs.js";
import { badge, empty, facts, failure, interval, jobLink, loading, problemLink, section, variantCode, when } from "./parts.js";
import { addressOf } from "./router.js";
import { isRight } from "./space.js";
import { table } from "./table.js";
import { variantText } from "./variants.js";

function trialTable(caption, trials) {
  return table({
    caption,
    rows: trials,
    columns: [
      { label: "Trial", cell: (row) => h("code", {}, row.name) },
      { label: "Verdict", cell: (row) => badge(enumName(row.verdict ?? "VERDICT_OK", "VERDICT_")), sort: (row) => row.verdict },
      { label: "Time, us", number: true, cell: (row) => interval(row.timing), sort: (row) => row.timing?.medianUs ?? NaN },
      { label: "Variant", class: "text", cell: (row) => variantCode(variantText(row.variant)) },
      { label: "Detail", class: "text", optional: true, cell: (row) => row.detail ?? "" },
    ],
  });
}

function tuneResult(tune) {
  const removed = tune.removed ?? [];
  return section(
    "result",
    "Result",
    h("p", {}, h("strong", {}, tune.promoted ? "Promoted. " : "Not promoted. "), tune.decision ?? ""),
    facts([
      ["served now", variantCode(variantText(tune.incumbent?.trial?.variant ?? tune.winner?.variant))],
      ["its time", tune.winner?.timing && [interval(tune.winner.timing), " us"]],
      ["shortest launch", tune.floorUs && `${us(tune.floorUs)} us`],
      ["claim", tune.claim?.of && `within ${percent(tune.claim.within)} of the best of ${count(tune.claim.of)} with ${percent(tune.claim.confidence)} (${count(tune.claim.tried)} tried)`],
    ]),
    tune.playOff?.length ? [h("h3", {}, "Play-off, by time"), trialTable("Play-off", tune.playOff)] : null,
    removed.length
      ? fold("removed", `Left out by ${counted(removed.length, "constraint")}`, () =>
          table({
            caption: "Variants left out by constraints",
            rows: removed,
            columns: [
              { label: "Family", cell: (row) => row.family },
              { label: "Constraint", class: "text", cell: (row) => h("code", {}, row.constraint) },
              { label: "Reason", class: "text", cell: (row) => row.reason },
              { label: "Left out", number: true, cell: (row) => count(row.removed), sort: (row) => Number(row.removed ?? 0) },
            ],
          }))
      : null,
  );
}

function evaluateResult({ decision, reason, speedup: factor, trial, incumbent }) {
  return section(
    "result",
    "Result",
    h("p", {}, badge(enumName(decision, "DECISION_")), " ", reason ?? ""),
    facts([["speed-up", factor ? speedup(factor) : null]]),
    trialTable("The variant and the incumbent", [trial, incumbent].filter(Boolean)),
  );
}

const outcomeOf = (row) => enumName(row.outcome, "OUTCOME_");

function sweepRows(caption, rows) {
  return table({
    caption,
    rows,
    columns: [
      { label: "Problem", class: "wide", cell: (row) => problemLink(row.problem), sort: (row) => row.problem },
      { label: "Outcome", cell: (row) => badge(outcomeOf(row)), sort: (row) => OUTCOMES.indexOf(outcomeOf(row)) },
      { label: "Before, us", number: true, cell: (row) => us(row.beforeUs), sort: (row) => row.beforeUs ?? 0 },
      { label: "After, us", number: true, cell: (row) => us(row.afterUs), sort: (row) => row.afterUs ?? 0 },
      { label: "Change", number: true, cell: (row) => percentChange(rowChange(row)), sort: rowChange },
      { label: "Trials", number: true, cell: (row) => count(row.trials), sort: (row) => Number(row.trials ?? 0) },
      { label: "Card", cell: (row) => row.deviceId ?? "" },
      { label: "Detail", class: "text", optional: true, cell: (row) => row.detail ?? "" },
    ],
  });
}

function sweepResult({ rows = [] }) {
  const sorted = [...rows].sort((a, b) => OUTCOMES.indexOf(outcomeOf(a)) - OUTCOMES.indexOf(outcomeOf(b)));
  const same = sorted.filter((row) => outcomeOf(row) === "SAME");
  const others = sorted.filter((row) => outcomeOf(row) !== "SAME");
  return section(
    "result",
    "Report",
    others.length ? sweepRows("Rows of the sweep, but for those that are SAME", others) : null,
    same.length ? fold("same", `${counted(same.length, "problem")} as before (SAME)`, () => sweepRows("Rows that are SAME", same), others.length === 0) : null,
  );
}

function submitResult({ decision, reason, rows = [] }) {
  return section(
    "result",
    "Result",
    h("p", {}, badge(enumName(decision, "DECISION_")), " ", reason ?? ""),
    table({
      caption: "Problems of the submission",
      rows,
      columns: [
        { label: "Problem", class: "wide", cell: (row) => problemLink(row.problem) },
        { label: "Decision", cell: (row) => badge(enumName(row.decision, "DECISION_")) },
        { label: "Speed-up", number: true, cell: (row) => speedup(row.speedup), sort: (row) => row.speedup ?? 0 },
        { label: "Reason", class: "text", cell: (row) => row.reason ?? "" },
      ],
    }),
  );
}

// Of a profile or of sanitizers: a sentence.
function toolResult({ trial, bound, reason }) {
  return section("result", "Result", h("p", {}, trial?.name ? `${trial.name}: ` : "", bound ? `bound by ${bound}` : reason ?? ""));
}

function children(operations) {
  if (operations.length === 0) return null;
  return section(
    "problems",
    "Its problems",
    table({
      caption: "Problems of the sweep, newest first",
      rows: operations,
      columns: [
        { label: "Operation", class: "text", cell: (row) => jobLink(row.name, row.problem || row.title) },
        { label: "State", cell: (row) => badge(enumName(row.state, "STATE_")), sort: (row) => row.state },
        { label: "Card", cell: (row) => row.progress?.deviceId ?? "" },
        { label: "Progress", cell: (row) => (row.done ? "" : progressBar(row)) },
        { label: "Error", class: "text", cell: (row) => row.error?.message ?? "" },
      ],
    }),
  );
}

function failures(trials) {
  const bad = trials.filter((trial) => !isRight(trial));
  if (bad.length === 0) return null;
  return fold("bad", `${counted(bad.length, "trial")} that did not end OK`, () => trialTable("Trials that did not end OK", bad.slice(0, 200)));
}

function view({ operation, trials, problems }) {
  const verdicts = operation.progress?.verdicts?.length ? operation.progress.verdicts : verdictCounts(trials);
  return [
    h("p", { class: "verdict" }, badge(enumName(operation.state, "STATE_")), " ", operation.done ? ["ended ", when(operation.endTime)] : progressBar(operation)),
    operation.error ? h("p", { class: "failure" }, operation.error.message) : null,
    facts([
      ["problem", operation.problem ? problemLink(operation.problem) : null],
      ["sweep", operation.parent ? jobLink(operation.parent) : null],
      ["request", operation.requestId],
    ]),
    progressFacts(operation),
    operation.tune ? tuneResult(operation.tune) : null,
    operation.evaluate ? evaluateResult(operation.evaluate) : null,
    operation.sweep ? sweepResult(operation.sweep) : null,
    operation.submit ? submitResult(operation.submit) : null,
    operation.profile || operation.sanitize ? toolResult(operation.profile ?? operation.sanitize) : null,
    trials.length ? section("trials", "Trials", verdictMix(verdicts), bestCurve(trials), failures(trials), operation.problem ? h("p", {}, h("a", { href: addressOf("space", operation.problem) }, "The space of its problem's variants")) : null) : null,
    children(problems),
    section("commands", "Commands", commandLine(watchCommand(operation.name), operation.done ? "print its result" : "follow it"), operation.done ? null : commandLine(cancelCommand(operation.name), "stop it")),
  ];
}

export function show({ root, subject, signal }) {
  const name = /^\d+$/.test(subject) ? `operations/${subject}` : subject;
  const title = h("h1", {}, name);
  const body = h("div", {}, loading());
  root.append(h("p", { class: "crumbs" }, h("a", { href: "#/jobs" }, "Jobs"), ` / ${name}`), title, body);
  if (!name) {
    update(body, empty("The address names no operation; Jobs lists them.", null));
    return;
  }
  let trials = [];
  let last = null;
  repeat(
    3,
    async () => {
      // What has ended does not change.
      if (last?.operation.done) return last;
      const operation = await get("operation", { name }, signal);
      delete operation.sweep?.markdown;
      const problems = operation.problem ? [] : (await list("operations", "operations", { parent: name, view: "OPERATION_VIEW_BASIC", page_size: 300 }, signal, 1)).items;
      if (operation.problem) {
        const page = await get("trials", { filter: { job: name }, view: "TRIAL_VIEW_BASIC", page_size: trials.length ? 60 : 600 }, signal);
        trials = mergeTrials(trials, page.trials ?? []);
      }
      last = { operation, trials, problems };
      return last;
    },
    (data) => {
      title.textContent = data.operation.title || name;
      update(body, view(data));
    },
    (error) => update(body, failure(error)),
    signal,
  );
}
