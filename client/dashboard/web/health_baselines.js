// Health: what is served against other implementations, with how many problems that covers.
import { commandLine } from "./commands.js";
import { fold, h } from "./dom.js";
import { count, short, speedup } from "./format.js";
import { meansAgainstBaselines } from "./health.js";
import { classAndPolicy, empty, problemLink, section } from "./parts.js";
import { table } from "./table.js";

function problems(key, title, entries) {
  if (entries.length === 0) return "none";
  return fold(key, `${count(entries.length)}${title}`, () => h("ul", { class: "plain" }, entries.map((entry) => h("li", {}, entry))));
}

export function baselineSection(trends, baselines, classOf) {
  const rows = meansAgainstBaselines(trends, baselines, classOf);
  if (rows.length === 0) {
    return section("baselines", "Against baselines", empty("No baseline is recorded for what is served.", commandLine("attune baseline b2.h8.q512.d64.f16 'torch-sdpa 2.11' 43.1", "record another implementation's time, in us")));
  }
  const keyOf = (row) => `${row.deviceClass} ${row.policy} ${row.contender}`;
  return section(
    "baselines",
    "Against baselines",
    h("p", { class: "muted" }, "Geometric mean of the baseline's time over the served one: above 1x, what attune serves is faster. Problems without that baseline are left out and named."),
    table({
      caption: "Geometric means against baselines",
      rows,
      columns: [
        { label: "Baseline", class: "text", cell: (row) => row.contender, sort: (row) => row.contender },
        { label: "Class", cell: (row) => classAndPolicy(row), sort: (row) => row.classAlias || short(row.deviceClass) },
        { label: "Geometric mean", number: true, cell: (row) => h("strong", { class: row.mean < 1 ? "change bad" : null }, speedup(row.mean)), sort: (row) => row.mean },
        { label: "Least", number: true, cell: (row) => speedup(row.slowest), sort: (row) => row.slowest },
        { label: "Covers", number: true, cell: (row) => `${count(row.covered)} of ${count(row.of)}`, sort: (row) => row.covered / row.of },
        { label: "Baseline is faster", cell: (row) => problems(`behind/${keyOf(row)}`, "", row.behind.map(([problem, ratio]) => [problemLink(problem, row.classAlias || row.deviceClass, row.policy), ` ${speedup(ratio)}`])), sort: (row) => row.behind.length },
        { label: "Left out", cell: (row) => problems(`excluded/${keyOf(row)}`, "", row.excluded.map((problem) => problemLink(problem, row.classAlias || row.deviceClass, row.policy))), sort: (row) => row.excluded.length },
      ],
    }),
  );
}
