// The Problem page: who was served and why, what is as fast, how it is launched, what bounds it.
import { get } from "./api.js";
import { commandLine, explainCommand, rollBackCommand } from "./commands.js";
import { fold, h, update } from "./dom.js";
import { bytes, count, enumWord, percent, short, si, us } from "./format.js";
import { empty, facts, failure, interval, jobLink, loading, section, variantCode, when } from "./parts.js";
import { table } from "./table.js";
import { variantText } from "./variants.js";

// Newest first, the first that no roll-back took out is served.
export function servedOf(incumbents) {
  return incumbents.find((incumbent) => !incumbent.rolledBack);
}

function stateOf(incumbent, served) {
  if (incumbent.rolledBack) return "rolled back";
  if (incumbent !== served) return "replaced";
  return incumbent.pinned ? "served, pinned" : "served";
}

function claimText(claim) {
  if (!claim?.of) return "";
  return `within ${percent(claim.within)} of the best of ${count(claim.of)} with ${percent(claim.confidence)} (${count(claim.tried)} tried)`;
}

export function incumbentSection(incumbents, device, trend) {
  const served = servedOf(incumbents);
  const earlier = incumbents.filter((incumbent) => incumbent !== served && !incumbent.rolledBack);
  const rows = table({
    caption: "Incumbents, newest first",
    rows: incumbents,
    columns: [
      { label: "Incumbent", cell: (row) => h("code", {}, row.name) },
      { label: "Since", cell: (row) => when(row.promoteTime), sort: (row) => row.promoteTime },
      { label: "State", cell: (row) => (row === served ? h("strong", {}, stateOf(row, served)) : stateOf(row, served)) },
      { label: "Time, us", number: true, cell: (row) => interval(row.timing ?? row.trial?.timing), sort: (row) => row.timing?.medianUs ?? 0 },
      { label: "Variant", class: "text", cell: (row) => variantCode(variantText(row.trial?.variant)) },
      { label: "Why", class: "text", cell: (row) => [row.why ?? "", row.claim ? h("div", { class: "muted" }, claimText(row.claim)) : null] },
      { label: "Job", cell: (row) => (row.job ? jobLink(row.job) : "") },
    ],
  });
  const back = earlier.length
    ? fold("rollback", "Roll back", () => [
        commandLine(rollBackCommand(trend.problemText, "", device, trend.policy), "serve the previous variant again"),
        earlier.slice(0, 5).map((incumbent) => commandLine(rollBackCommand(trend.problemText, incumbent.name, device, trend.policy), `back to the one of ${incumbent.promoteTime.slice(0, 10)}, ${us(incumbent.timing?.medianUs)} us then`)),
      ])
    : h("p", { class: "muted" }, "Nothing was served before, so there is nothing to roll back to.");
  return section("incumbents", "What was served, and why", rows, back);
}

export function tieSection(served) {
  const ties = served?.ties ?? [];
  if (ties.length === 0) return null;
  return section("ties", "Ties", h("p", { class: "muted" }, "Variants that the play-off could not tell apart from what is served."), h("ul", {}, ties.map((tie) => h("li", {}, variantCode(variantText(tie))))));
}

function dim(size) {
  return [size?.x, size?.y, size?.z].map((side) => count(side ?? 1)).join(" × ");
}

function recipe(trial) {
  const { resources = {}, geometry = {}, accuracy = {}, recipe: launchRecipe = {} } = trial;
  const launches = launchRecipe.launches ?? [];
  return [
    facts([
      ["trial", trial.name],
      ["registers a thread", resources.registers],
      ["shared memory a CTA", resources.sharedBytes && bytes(resources.sharedBytes)],
      ["spills a thread", resources.spillBytes && bytes(resources.spillBytes)],
      ["CTAs", geometry.ctas && `${count(geometry.ctas)}, ${count(geometry.ctasPerSm)} resident an SM, ${Number(geometry.waves ?? 0).toFixed(2)} waves`],
      ["occupancy", geometry.occupancy && percent(geometry.occupancy)],
      ["largest error", accuracy.maxAbsError && `${accuracy.maxAbsError.toPrecision(2)} (plain: ${(accuracy.plainMaxAbsError ?? 0).toPrecision(2)})`],
      ["artifact", short(trial.artifactSha256)],
      ["compiled in", trial.compileMs && `${Math.round(trial.compileMs)} ms`],
    ]),
    table({
      caption: "Launches",
      rows: launches,
      columns: [
        { label: "Entry", cell: (launch) => h("code", {}, launch.entry) },
        { label: "Grid", cell: (launch) => dim(launch.grid) },
        { label: "Block", cell: (launch) => dim(launch.block) },
        { label: "Dynamic shared memory", number: true, cell: (launch) => bytes(launch.dynamicSharedBytes) },
        { label: "Arguments", number: true, cell: (launch) => count(launch.args?.length) },
      ],
    }),
    (launchRecipe.scratch ?? []).length ? h("p", {}, "Scratch: ", launchRecipe.scratch.map(({ name, bytes: size }) => `${name} ${bytes(size)}`).join(", ")) : null,
    h("details", {}, h("summary", {}, "The recipe as it is stored"), h("pre", { tabindex: "0" }, JSON.stringify(launchRecipe, null, 1))),
  ];
}

// Asked for when it is opened: most readers never do.
export function recipeFold(served, signal) {
  if (!served?.trial?.name) return null;
  return fold("recipe", h("span", { class: "group-title" }, "Recipe: how it is launched"), () => {
    const body = h("div", {}, loading());
    get("trial", { name: served.trial.name }, signal).then((trial) => update(body, recipe(trial)), (error) => error.name !== "AbortError" && update(body, failure(error)));
    return body;
  });
}

export function explanation(explained, trend, device) {
  const findings = explained?.findings ?? [];
  const needs = explained?.flops ? `needs ${si(explained.flops, "FLOP")} and ${si(explained.bytes, "B")}; reaches ${si((explained.tflops ?? 0) * 1e12, "FLOP/s")} and ${si((explained.gbs ?? 0) * 1e9, "B/s")}` : "";
  return section(
    "explain",
    "What bounds it",
    needs ? h("p", {}, needs) : null,
    findings.length
      ? h("ol", {}, findings.map(({ bound, text, advice }) => h("li", {}, h("span", { class: "badge info" }, enumWord(bound, "BOUND_")), " ", text, advice ? h("div", { class: "muted" }, `Try: ${advice}`) : null)))
      : empty("Nothing is known of what bounds it.", commandLine(explainCommand(trend.problemText, device, trend.policy))),
  );
}
