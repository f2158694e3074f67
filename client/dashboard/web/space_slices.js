// Space: one small chart for each parameter, and the map of verdicts.
import { chartFigure, legendKey, valueAxis } from "./charts.js";
import { h } from "./dom.js";
import { count, enumName, percent, us } from "./format.js";
import { bestByValue, verdictMap } from "./space.js";
import { table } from "./table.js";

const NEAR = 3;

function sliceTable(axis, best) {
  return table({
    caption: `Best time by ${axis.name}`,
    rows: best,
    columns: [
      { label: axis.name, number: true, cell: (row) => String(row.value), sort: (row) => row.value },
      { label: "Best, us", number: true, cell: (row) => us(row.us), sort: (row) => row.us },
      { label: "Trials", number: true, cell: (row) => count(row.tried), sort: (row) => row.tried },
    ],
  });
}

function slice(axis, points) {
  const ok = points.filter((point) => point.us > 0);
  const winner = ok[0];
  const best = bestByValue(points, axis);
  const xOf = (value) => axis.values.indexOf(value);
  // What is several times as slow would press the rest together.
  const shown = ok.filter((point) => point.us <= NEAR * winner.us);
  const [low, high] = [winner.us / 1.15, 1.1 * Math.max(...shown.map((point) => point.us))];
  const ticks = [0.1, 0.5, 0.9].map((share) => ({ value: low * (high / low) ** share }));
  const build = (palette) => ({
    type: "scatter",
    data: {
      datasets: [
        { data: [{ x: xOf(winner.values[axis.name]), y: winner.us, point: winner }], backgroundColor: palette.bad, borderColor: palette.bad, pointRadius: 6, pointStyle: "rectRot" },
        {
          data: best.filter((each) => each.us <= NEAR * winner.us).map((each) => ({ x: xOf(each.value), y: each.us, best: each })),
          type: "line",
          borderColor: palette.accent,
          backgroundColor: palette.accent,
          borderWidth: 2,
          pointRadius: 3,
        },
        // Side by side in the order they come, so that equal times do not hide each other.
        { data: shown.map((point, index) => ({ x: xOf(point.values[axis.name]) + (((index * 7) % 11) - 5) / 28, y: point.us, point })), backgroundColor: `${palette.muted}80`, borderColor: "transparent", pointRadius: 2, silent: true },
      ],
    },
    options: {
      parsing: false,
      scales: {
        x: {
          type: "linear",
          min: -0.5,
          max: axis.values.length - 0.5,
          afterBuildTicks: (scale) => (scale.ticks = axis.values.map((_, index) => ({ value: index }))),
          ticks: { color: palette.muted, callback: (value) => String(axis.values[value] ?? ""), autoSkip: axis.values.length > 12 },
          grid: { color: palette.border },
        },
        y: { ...valueAxis(palette, "us", { type: "logarithmic", min: low, max: high }), afterBuildTicks: (scale) => (scale.ticks = ticks), ticks: { color: palette.muted, callback: (value) => us(value) } },
      },
      plugins: {
        tooltip: {
          callbacks: {
            title: () => "",
            label: ({ raw }) => (raw.best ? `${axis.name}=${raw.best.value}: best ${us(raw.best.us)} us of ${raw.best.tried} trials` : `fastest of all: ${us(raw.point.us)} us with ${axis.name}=${raw.point.values[axis.name]}`),
          },
        },
      },
    },
  });
  const words = best.map((each) => `${each.value}: ${us(each.us)}`).join(", ");
  return h("div", {}, h("h3", {}, axis.name), chartFigure({ key: `slice/${axis.name}`, label: `Time in us against ${axis.name}; best by value: ${words}`, build, rows: () => sliceTable(axis, best), height: "small" }));
}

export function slices(axes, points) {
  return [
    h("p", { class: "key-line" }, legendKey("winner", "the fastest of all"), " ", legendKey("series1", "the fastest with that value"), " ", legendKey("dotgrey", `a trial within ${NEAR}x of the fastest`)),
    h("div", { class: "slices" }, axes.map((axis) => slice(axis, points))),
  ];
}

// A table: the share that is right of each pair of values, and what else came of them most.
export function verdictTable(points, a, b) {
  const cells = verdictMap(points, a, b);
  const cell = (each) => {
    if (each.tried === 0) return h("td", { class: "muted" }, "–");
    const share = each.ok / each.tried;
    const td = h("td", {}, h("strong", {}, percent(share)), h("div", { class: "small" }, `right, ${count(each.tried)} tried`), each.worst ? h("div", { class: "small" }, `${enumName(each.worst[0], "VERDICT_")} ${count(each.worst[1])}`) : null);
    td.style.background = `color-mix(in srgb, var(--good-surface) ${100 * share}%, var(--bad-surface))`;
    return td;
  };
  return h(
    "div",
    { class: "scroll keep", tabindex: "0", role: "region", "aria-label": `Verdicts by ${a.name} and ${b.name}` },
    h(
      "table",
      { class: "map" },
      h("caption", { class: "hidden" }, `Share of OK by ${a.name} (columns) and ${b.name} (rows)`),
      h("thead", {}, h("tr", {}, h("th", {}, `${b.name} \\ ${a.name}`), a.values.map((value) => h("th", { scope: "col" }, String(value))))),
      h("tbody", {}, cells.map((row, index) => h("tr", {}, h("th", { scope: "row" }, String(b.values[index])), row.map(cell)))),
    ),
  );
}
