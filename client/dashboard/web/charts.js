// Charts on a canvas by Chart.js: in the theme's colours, reachable by keyboard, each with its words and its table.
import { fold, h } from "./dom.js";
import { moment } from "./format.js";

const NAMES = ["text", "muted", "border", "surface", "accent", "bad", "good", "warn", "info", "band", "noise", "series1", "series2", "series3", "series4", "series5", "series6"];

// The theme's colours by name, as style.css has them.
export function colors() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

export const SERIES = ["series1", "series2", "series3", "series4", "series5", "series6"];
export const POINTS = ["circle", "triangle", "rect", "rectRot", "star", "crossRot"];

// Where a time axis that shows `low` to `high` (ms) has its ticks: round times of the reader's zone, at most `most` of them.
export function timeTicks(low, high, most = 8) {
  const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400].map((second) => 1000 * second);
  steps.push(...[2, 7, 14, 30, 61, 91, 182].map((days) => days * 864e5));
  const step = steps.find((each) => (high - low) / each <= most) ?? 365 * 864e5;
  const midnight = new Date(low).setHours(0, 0, 0, 0);
  const ticks = [];
  for (let at = midnight + step * Math.ceil((low - midnight) / step); at <= high; at += step) ticks.push(at);
  return ticks;
}

function tickText(value, step) {
  const text = moment(value);
  if (step < 6e4) return `${text.slice(11, 16)}:${String(new Date(value).getSeconds()).padStart(2, "0")}`;
  return step < 864e5 ? text.slice(5, 16) : text.slice(0, 10);
}

export function timeAxis(palette, low, high) {
  const ticks = timeTicks(low, high);
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : 864e5;
  return {
    type: "linear",
    min: low,
    max: high,
    afterBuildTicks: (axis) => (axis.ticks = ticks.map((value) => ({ value }))),
    ticks: { color: palette.muted, callback: (value) => tickText(value, step), maxRotation: 0, autoSkipPadding: 16 },
    grid: { color: palette.border },
  };
}

export function valueAxis(palette, title, more = {}) {
  return {
    title: { display: true, text: title, color: palette.muted },
    grid: { color: palette.border },
    ...more,
    ticks: { color: palette.muted, includeBounds: false, ...more.ticks },
  };
}

// Vertical marks {x, label, color} over the plot, their labels at its top.
export const marksPlugin = {
  id: "marks",
  afterDatasetsDraw(chart, _, options) {
    const { ctx, chartArea: area, scales } = chart;
    ctx.save();
    ctx.font = "600 11px sans-serif";
    ctx.textAlign = "center";
    let right = -Infinity;
    let row = 0;
    for (const mark of options.marks ?? []) {
      const x = scales.x.getPixelForValue(mark.x);
      if (x < area.left || x > area.right) continue;
      ctx.strokeStyle = mark.color;
      ctx.fillStyle = mark.color;
      ctx.setLineDash([4, 3]);
      ctx.beginPath();
      ctx.moveTo(x, area.top);
      ctx.lineTo(x, area.bottom);
      ctx.stroke();
      // Neighbours' labels go below each other.
      row = x - right < 14 ? (row + 1) % 4 : 0;
      right = x;
      ctx.setLineDash([]);
      ctx.beginPath();
      ctx.arc(x, area.top + 9 + 17 * row, 8, 0, 2 * Math.PI);
      ctx.fill();
      ctx.fillStyle = mark.on;
      ctx.fillText(mark.label, x, area.top + 13 + 17 * row);
    }
    ctx.restore();
  },
};

function base(palette) {
  return {
    animation: false,
    responsive: true,
    maintainAspectRatio: false,
    normalized: true,
    interaction: { mode: "nearest", intersect: false },
    plugins: {
      legend: { display: false },
      tooltip: {
        backgroundColor: palette.text,
        titleColor: palette.surface,
        bodyColor: palette.surface,
        displayColors: false,
        filter: (item) => !item.dataset.silent,
      },
    },
  };
}

function merge(into, from) {
  for (const [key, value] of Object.entries(from)) {
    if (value && typeof value === "object" && !Array.isArray(value)) into[key] = merge({ ...(into[key] ?? {}) }, value);
    else into[key] = value;
  }
  return into;
}

// Arrow keys go through the points that have words; what is chosen is shown and read aloud.
function byKeyboard(canvas, chart, said) {
  const stops = [];
  chart().data.datasets.forEach((dataset, datasetIndex) => {
    if (!dataset.silent) dataset.data.forEach((point, index) => point?.y !== null && stops.push({ datasetIndex, index, x: point.x }));
  });
  stops.sort((a, b) => a.x - b.x || a.datasetIndex - b.datasetIndex);
  let at = -1;
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: at + 1, ArrowLeft: at < 0 ? stops.length - 1 : at - 1, Home: 0, End: stops.length - 1 };
    if (!(event.key in moves) || stops.length === 0) return;
    event.preventDefault();
    at = Math.max(0, Math.min(stops.length - 1, moves[event.key]));
    const current = chart();
    const { datasetIndex, index } = stops[at];
    const point = current.getDatasetMeta(datasetIndex).data[index];
    current.setActiveElements([{ datasetIndex, index }]);
    current.tooltip.setActiveElements([{ datasetIndex, index }], { x: point.x, y: point.y });
    current.update("none");
    said.textContent = [...(current.tooltip.title ?? []), ...(current.tooltip.body ?? []).flatMap((each) => each.lines)].join(", ");
  });
}

// A figure with a chart. `build(colors)` returns its type, data, options and plugins; it is called again when the theme
// changes. `label` says what the chart shows; `keys` are its legend; `rows()`, if given, makes the table with the figures.
export function chartFigure({ key, label, build, keys, rows, height = "medium" }) {
  const canvas = h("canvas", { role: "img", tabindex: "0", "aria-label": `${label}. The arrow keys go from point to point.`, "data-key": `${key}/canvas` });
  const said = h("p", { class: "hidden", "aria-live": "polite" });
  const figure = h(
    "figure",
    { class: "chart" },
    h("div", { class: `plot ${height}` }, canvas),
    said,
    keys && h("figcaption", {}, keys),
    rows && fold(`${key}/table`, "The same as a table", rows),
  );
  let chart = null;
  const draw = () => {
    chart?.destroy();
    const palette = colors();
    const config = build(palette);
    config.options = merge(base(palette), config.options ?? {});
    chart = new window.Chart(canvas, config);
  };
  const onTheme = () => (canvas.isConnected ? draw() : document.removeEventListener("themechange", onTheme));
  document.addEventListener("themechange", onTheme);
  // Chart.js measures the canvas' parent: it must be in the page first. One that has left the page is destroyed.
  requestAnimationFrame(() => {
    if (!canvas.isConnected) return;
    draw();
    byKeyboard(canvas, () => chart, said);
    const gone = new MutationObserver(() => {
      if (canvas.isConnected) return;
      gone.disconnect();
      document.removeEventListener("themechange", onTheme);
      chart.destroy();
    });
    gone.observe(document.getElementById("main"), { childList: true, subtree: true });
  });
  return figure;
}

// One entry of a legend: a swatch of class `kind` (style.css) and words.
export function legendKey(kind, ...words) {
  return h("span", { class: "key" }, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), words);
}
