// Two dates, device classes, toolchains, drivers or kernel families beside each other; first what differs for certain.
import { get, list } from "./api.js";
import { commandLine, compareCommand, evaluateCommand, historyCommand } from "./commands.js";
import { fold, h, update } from "./dom.js";
import { count, counted, date, enumName, NONE, policyName, policyWords, short, speedup, us } from "./format.js";
import { badge, empty, failure, interval, loading, problemLink, section, when } from "./parts.js";
import { keepQuery } from "./router.js";
import { table } from "./table.js";
import { variantChange } from "./variants.js";

const FIELDS = ["end_time", "device_id", "toolchain", "driver", "family"];
const SIDES = [["from", "From"], ["to", "To"]];
const SIGNIFICANT = ["SLOWER", "FASTER"];

const nameOf = (row) => enumName(row.comparison, "COMPARISON_");

// Pure. The request's fields of one side: a day stands for its end, in the reader's zone.
export function selectionOf(values) {
  const selection = {};
  for (const field of FIELDS) if (values[field]) selection[field] = values[field];
  if (values.end_time) {
    const [year, month, day] = values.end_time.split("-").map(Number);
    selection.end_time = new Date(year, month - 1, day + 1).toISOString();
  }
  return selection;
}

// The class of most of these times, by its alias; "" where that is not on this host: the server compares its own classes.
function mostTimed(retimings, here) {
  const counts = new Map();
  for (const { deviceId } of retimings) counts.set(deviceId, (counts.get(deviceId) ?? 0) + 1);
  const [[id] = [""]] = [...counts].sort((a, b) => b[1] - a[1]);
  return here.find((device) => device.id === id)?.classAlias ?? "";
}

// What can be chosen: the classes and cards that are here, and what the latest nights ran with.
async function choices(signal) {
  const [devices, families, recent] = await Promise.all([get("devices", {}, signal), get("families", {}, signal), list("retimings", "retimings", { page_size: 200 }, signal, 1)]);
  const here = devices.devices ?? [];
  const unique = (values) => [...new Set(values.filter(Boolean))].sort();
  const dependencies = recent.items.map((retiming) => retiming.dependencies ?? {});
  return {
    device_id: unique([...here.map((device) => device.classAlias), ...here.map((device) => device.id)]),
    toolchain: unique(dependencies.map((each) => each.toolchain)),
    driver: unique([...dependencies.map((each) => each.driver), ...here.map((device) => device.driver)]),
    family: unique((families.families ?? []).map((family) => family.name)),
    latest: recent.items[0]?.finishTime,
    first: mostTimed(recent.items, here),
  };
}

const LABELS = { end_time: "Until the end of", device_id: "Device or class", toolchain: "Toolchain", driver: "Driver", family: "Family (fastest trial)" };

function side([name, title], values, options, changed) {
  const fields = FIELDS.map((field) => {
    const id = `${name}-${field}`;
    const set = (event) => {
      values[field] = event.target.value.trim();
      changed();
    };
    const listId = options[field] ? `${id}-list` : null;
    return h(
      "label",
      {},
      LABELS[field],
      h("input", { type: field === "end_time" ? "date" : "text", id, value: values[field] ?? "", list: listId, placeholder: field === "end_time" ? null : "any", size: 14, onchange: set }),
      listId ? h("datalist", { id: listId }, options[field].map((value) => h("option", { value }))) : null,
    );
  });
  return h("fieldset", {}, h("legend", {}, title), fields);
}

function differs({ from, to }) {
  if (!from || !to) return "";
  const parts = [];
  const pairs = [["card", from.deviceId, to.deviceId], ["driver", from.dependencies?.driver, to.dependencies?.driver], ["toolchain", from.dependencies?.toolchain, to.dependencies?.toolchain], ["source", from.dependencies?.sourceHash, to.dependencies?.sourceHash]];
  for (const [what, a, b] of pairs) if (a !== b) parts.push(`${what} ${short(a) || "unknown"} → ${short(b) || "unknown"}`);
  if (from.variant !== to.variant) parts.push(`variant ${variantChange(from.variant, to.variant)}`);
  return parts.length ? h("ul", { class: "plain" }, parts.map((part) => h("li", {}, part))) : h("span", { class: "muted" }, "nothing that is recorded");
}

const cellOf = (retiming) => (retiming ? [interval(retiming.timing), h("div", { class: "muted" }, when(retiming.finishTime))] : NONE);

function rowsTable(rows, order) {
  return table({
    caption: "Problems, those that differ most first",
    rows,
    order,
    columns: [
      { label: "Problem", class: "wide", cell: (row) => [problemLink(row.problem, (row.to ?? row.from)?.deviceId), h("div", { class: "muted" }, (row.to ?? row.from)?.deviceId)], sort: (row) => row.problem },
      { label: "Comparison", cell: (row) => badge(nameOf(row)), sort: nameOf },
      { label: "Speed-up", number: true, cell: (row) => h("span", { class: row.speedup > 0 && SIGNIFICANT.includes(nameOf(row)) ? `change ${row.speedup < 1 ? "bad" : "good"}` : null }, speedup(row.speedup)), sort: (row) => row.speedup ?? NaN },
      { label: "From, us", number: true, cell: (row) => cellOf(row.from), sort: (row) => row.from?.timing?.medianUs ?? NaN },
      { label: "To, us", number: true, cell: (row) => cellOf(row.to), sort: (row) => row.to?.timing?.medianUs ?? NaN },
      { label: "What else differs", class: "text", cell: differs },
      {
        label: "Commands",
        cell: (row) => {
          const shown = row.to ?? row.from;
          return fold(`commands/${row.problem} ${shown.deviceId}`, "reproduce", () => [
            commandLine(evaluateCommand(row.problem, shown.variant, shown.deviceId, shown.policy), "time it again"),
            commandLine(historyCommand(row.problem, shown.deviceId, shown.policy), "every night's time"),
          ]);
        },
      },
    ],
  });
}

function results(answer, shown, values, redraw) {
  const rows = answer.rows ?? [];
  if (rows.length === 0) return empty("No time of either side is known. Leave fields empty to mean any; a sweep adds times.", commandLine("attune sweep nightly.textproto", "time what is served again"));
  const counts = new Map();
  for (const row of rows) counts.set(nameOf(row), (counts.get(nameOf(row)) ?? 0) + 1);
  const significant = rows.filter((row) => SIGNIFICANT.includes(nameOf(row)));
  const visible = shown.all ? rows : significant;
  return [
    h("p", {}, "Geometric mean of all speed-ups: ", h("strong", {}, speedup(answer.geometricMean)), ` over ${counted(rows.filter((row) => row.speedup > 0).length, "problem")} with both times; above 1x, “To” is faster.`),
    h("ul", { class: "counts" }, [...counts].map(([name, of]) => h("li", {}, h("strong", {}, count(of)), " ", badge(name)))),
    h("label", { class: "check" }, h("input", { type: "checkbox", "data-key": "all", checked: shown.all, onchange: (event) => { shown.all = event.target.checked; redraw(); } }), ` also what is not significant (${count(rows.length - significant.length)})`),
    visible.length ? rowsTable(visible, shown.order) : h("p", {}, rows.some((row) => row.speedup > 0) ? "Nothing differs beyond the threshold and the intervals." : "No problem has a time on both sides."),
    commandLine(compareCommand(values.from, values.to, shown.policy), "the same in a terminal"),
  ];
}

export async function show({ root, query, signal }) {
  const form = h("div", {}, loading());
  const out = h("div");
  root.append(h("h1", {}, "Compare"), form, section("result", "Result", out));
  let options;
  try {
    options = await choices(signal);
  } catch (error) {
    if (error.name !== "AbortError") update(form, failure(error));
    return;
  }
  // Without a choice: the last night of the class that is timed most against that of 30 days before.
  const last = Date.parse(options.latest) || Date.now();
  const values = { from: {}, to: {} };
  const chosen = SIDES.some(([name]) => FIELDS.some((field) => query[`${name}.${field}`]));
  for (const [name] of SIDES) for (const field of FIELDS) values[name][field] = query[`${name}.${field}`] ?? "";
  if (!chosen) {
    values.from.end_time = date(last - 30 * 864e5);
    values.to.end_time = date(last);
    values.from.device_id = values.to.device_id = options.first;
  }
  const shown = { all: false, order: {}, policy: policyWords.includes(query.policy) ? query.policy : "hot" };
  let answer = null;
  const redraw = () => update(out, results(answer, shown, values, redraw));

  const compare = async () => {
    const kept = { policy: shown.policy === "hot" ? "" : shown.policy };
    for (const [name] of SIDES) for (const field of FIELDS) kept[`${name}.${field}`] = values[name][field];
    keepQuery(kept);
    update(out, loading());
    try {
      answer = await get("compare", { from: selectionOf(values.from), to: selectionOf(values.to), policy: policyName(shown.policy) }, signal);
      redraw();
    } catch (error) {
      if (error.name !== "AbortError") update(out, failure(error));
    }
  };
  const policies = h("select", { onchange: (event) => { shown.policy = event.target.value; compare(); } }, policyWords.map((policy) => h("option", { selected: policy === shown.policy }, policy)));
  update(form, h("div", { class: "controls" }, SIDES.map((each) => side(each, values[each[0]], options, compare)), h("fieldset", {}, h("legend", {}, "Both"), h("label", {}, "Policy", policies))));
  compare();
}
