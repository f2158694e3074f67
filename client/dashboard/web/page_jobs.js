// What runs and waits, as it happens, and what has ended.
import { get, repeat } from "./api.js";
import { cancelCommand, commandLine, watchCommand } from "./commands.js";
import { fold, h, update } from "./dom.js";
import { counted, durationText, enumName, seconds } from "./format.js";
import { bestCurve, progressBar, progressFacts, verdictMix } from "./job_parts.js";
import { isTune, mergeTrials, verdictCounts } from "./jobs.js";
import { badge, empty, failure, jobLink, loading, problemLink, section, when } from "./parts.js";
import { addressOf } from "./router.js";
import { table } from "./table.js";

const PAGE = 50;
// Curves of more running jobs than this would cost more than they tell.
const CURVES = 3;
const KINDS = [["", "all kinds"], ["JOB_KIND_TUNE", "tune"], ["JOB_KIND_SWEEP", "sweep"], ["JOB_KIND_EVALUATE", "evaluate"], ["JOB_KIND_SUBMIT", "submit"], ["JOB_KIND_PROFILE", "profile"], ["JOB_KIND_SANITIZE", "sanitize"]];

// Of each running job the trials so far: many at first, then only the newest.
function trialsOfRunning(signal) {
  const known = new Map();
  return async (operations) => {
    const running = operations.filter((operation) => operation.state === "STATE_RUNNING").slice(0, CURVES);
    for (const name of known.keys()) if (!running.some((operation) => operation.name === name)) known.delete(name);
    await Promise.all(running.filter(isTune).map(async ({ name }) => {
      const size = known.has(name) ? 60 : 500;
      const { trials } = await get("trials", { filter: { job: name }, view: "TRIAL_VIEW_BASIC", page_size: size }, signal);
      known.set(name, mergeTrials(known.get(name) ?? [], trials ?? []));
    }));
    return new Map(known);
  };
}

function activeCard(operation, trials) {
  const verdicts = operation.progress?.verdicts?.length ? operation.progress.verdicts : verdictCounts(trials ?? []);
  return h(
    "article",
    { class: "card" },
    h("h3", {}, badge(enumName(operation.state, "STATE_")), " ", jobLink(operation.name, operation.title || operation.name)),
    progressBar(operation),
    progressFacts(operation),
    verdictMix(verdicts),
    trials?.length ? bestCurve(trials) : null,
    fold(`commands/${operation.name}`, "Commands", () => [commandLine(watchCommand(operation.name), "follow it"), commandLine(cancelCommand(operation.name), "stop it")]),
  );
}

function active({ operations, trials }) {
  if (operations.length === 0) {
    return empty("Nothing runs and nothing waits.", commandLine("attune tune b2.h8.q512.d64.f16", "tune a problem"));
  }
  // What runs first, then as they will run.
  const place = (operation) => (operation.state === "STATE_RUNNING" ? 0 : Number(operation.progress?.queuePosition ?? 1e9));
  const sorted = [...operations].sort((a, b) => place(a) - place(b));
  return h("div", { class: "cards" }, sorted.map((operation) => activeCard(operation, trials.get(operation.name))));
}

const took = (operation) => (Date.parse(operation.endTime) - Date.parse(operation.createTime)) / 1000;

function finishedTable(operations, order) {
  return table({
    caption: "Operations that have ended, newest first",
    rows: operations,
    order,
    columns: [
      { label: "Operation", class: "text", cell: (row) => [jobLink(row.name, row.title || row.name), h("div", { class: "muted" }, row.name)], sort: (row) => row.title },
      { label: "State", cell: (row) => badge(enumName(row.state, "STATE_")), sort: (row) => row.state },
      { label: "Problem", class: "wide", optional: true, cell: (row) => (row.problem ? problemLink(row.problem) : ""), sort: (row) => row.problem ?? "" },
      { label: "Card", optional: true, cell: (row) => row.progress?.deviceId ?? "", sort: (row) => row.progress?.deviceId ?? "" },
      { label: "Ended", cell: (row) => when(row.endTime), sort: (row) => row.endTime ?? "" },
      { label: "Took", number: true, cell: (row) => durationText(took(row)), sort: took },
      { label: "On the card", number: true, optional: true, cell: (row) => (row.deviceTime ? durationText(seconds(row.deviceTime)) : ""), sort: (row) => seconds(row.deviceTime) },
      { label: "By", optional: true, cell: (row) => row.principal ?? "" },
      { label: "Error", class: "text", optional: true, cell: (row) => row.error?.message ?? "" },
    ],
  });
}

export function show({ root, query, signal }) {
  const running = h("div", {}, loading());
  const ended = h("div", {}, loading());
  const filter = { problem: query.problem ?? "", kind: KINDS.some(([kind]) => kind === query.kind) ? query.kind : "" };
  const kinds = h("select", { onchange: (event) => (location.hash = addressOf("jobs", "", { ...filter, kind: event.target.value })) },
    KINDS.map(([kind, words]) => h("option", { value: kind, selected: kind === filter.kind }, words)));
  root.append(
    h("h1", {}, "Jobs"),
    section("active", "Running and waiting", running),
    section("ended", "Ended", h("div", { class: "controls" }, h("label", {}, "Kind", kinds), filter.problem ? h("p", {}, "of ", problemLink(filter.problem), " · ", h("a", { href: "#/jobs" }, "of all problems")) : null), ended),
  );

  const trialsOf = trialsOfRunning(signal);
  repeat(
    2,
    async () => {
      const { operations = [] } = await get("operations", { active_only: true, problem: filter.problem, view: "OPERATION_VIEW_BASIC", page_size: 200 }, signal);
      const trials = await trialsOf(operations);
      return { operations, trials: [...trials] };
    },
    (data) => update(running, active({ operations: data.operations, trials: new Map(data.trials) })),
    (error) => update(running, failure(error)),
    signal,
  );

  // The first page is kept fresh; older ones are added as they are asked for.
  const order = {};
  const older = [];
  let first = [];
  let next = null;
  const basic = { ...filter, view: "OPERATION_VIEW_BASIC", page_size: PAGE };
  const draw = () => {
    const shown = new Map([...first, ...older].filter((operation) => operation.done).map((operation) => [operation.name, operation]));
    if (shown.size === 0) {
      update(ended, empty("No operation has ended yet.", null));
      return;
    }
    const more = next ? h("button", { type: "button", "data-key": "older", onclick: addOlder }, "Show older ones") : h("span", { class: "muted" }, "These are all.");
    update(ended, finishedTable([...shown.values()], order), h("p", {}, `${counted(shown.size, "operation")}. `, more));
  };
  const addOlder = async (event) => {
    event.target.disabled = true;
    try {
      const page = await get("operations", { ...basic, page_token: next }, signal);
      older.push(...(page.operations ?? []));
      next = page.nextPageToken ?? "";
      draw();
    } catch (error) {
      if (error.name !== "AbortError") update(ended, failure(error));
    }
  };
  repeat(
    10,
    () => get("operations", basic, signal),
    (page) => {
      first = page.operations ?? [];
      next ??= page.nextPageToken ?? "";
      draw();
    },
    (error) => update(ended, failure(error)),
    signal,
  );
}
