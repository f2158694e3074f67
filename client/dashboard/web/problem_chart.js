// The Problem page's chart: the time of every night with its interval, what it is compared with, and what changed.
import { chartFigure, legendKey, marksPlugin, POINTS, SERIES, timeAxis, valueAxis } from "./charts.js";
import { h } from "./dom.js";
import { moment, short, us } from "./format.js";
import { byCard, letter } from "./nights.js";
import { changeWords, when } from "./parts.js";
import { table } from "./table.js";

const NOISE = 0.02;

const at = (retiming) => Date.parse(retiming.finishTime);

function span(retimings) {
  const times = retimings.map(at);
  const [low, high] = [Math.min(...times), Math.max(...times)];
  const margin = Math.max(6e4, 0.02 * (high - low));
  return { low: low - margin, high: high + margin };
}

// The range of the nights, with the noise band; baselines far away would leave them no room.
function range(retimings, reference, baselines) {
  const alone = retimings.filter(({ timing }) => !timing.contended);
  const values = (alone.length ? alone : retimings).flatMap(({ timing }) => [timing.lowUs || timing.medianUs, timing.highUs || timing.medianUs]);
  if (reference) values.push(reference * (1 - 1.5 * NOISE), reference * (1 + 1.5 * NOISE));
  values.push(...baselines.map(({ medianUs }) => medianUs));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return { low: Math.max(0, low - 0.06 * (high - low)), high: high + 0.14 * (high - low) };
}

const line = (data, more) => ({ data, pointRadius: 0, pointHitRadius: 0, borderWidth: 0, silent: true, ...more });

function cardSets(all, index, palette, top) {
  const color = palette[SERIES[index % 2]];
  const retimings = all.filter(({ timing }) => !timing.contended);
  const contended = all.filter(({ timing }) => timing.contended);
  const point = (value) => (retiming) => ({ x: at(retiming), y: value(retiming.timing) });
  return [
    line(retimings.map(point((timing) => timing.lowUs || timing.medianUs))),
    line(retimings.map(point((timing) => timing.highUs || timing.medianUs)), { fill: "-1", backgroundColor: index % 2 ? `${color}33` : palette.band }),
    {
      data: retimings.map((retiming) => ({ ...point((timing) => timing.medianUs)(retiming), retiming })),
      borderColor: color,
      backgroundColor: color,
      borderWidth: 1.5,
      pointRadius: retimings.length > 120 ? 1.5 : 2.5,
      pointHitRadius: 8,
      pointStyle: POINTS[index % POINTS.length],
    },
    {
      data: contended.map((retiming) => ({ x: at(retiming), y: Math.min(top, retiming.timing.medianUs), retiming })),
      borderColor: palette.warn,
      borderWidth: 1.5,
      showLine: false,
      pointRadius: 4,
      pointHitRadius: 8,
      pointStyle: "crossRot",
    },
  ];
}

function tooltipLines({ raw: { retiming } }) {
  const { timing, dependencies = {} } = retiming;
  const lines = [`${us(timing.medianUs)} us (95 %: ${us(timing.lowUs)} to ${us(timing.highUs)})`];
  lines.push(`${retiming.deviceId}, driver ${dependencies.driver || "unknown"}, ${dependencies.toolchain || "unknown toolchain"}`);
  if (timing.smClockMhz) lines.push(`${timing.smClockMhz} MHz, ${Math.round(timing.powerW ?? 0)} W, ${timing.temperatureC ?? 0} °C`);
  if (retiming.count > 1) lines.push(`of ${retiming.count} re-timings the median one`);
  if (timing.contended) lines.push("another process was on the card");
  return lines;
}

function nightRows(retimings) {
  const rows = [...retimings].reverse();
  return table({
    caption: "Times by night, newest first",
    rows,
    columns: [
      { label: "Time", cell: (row) => when(row.finishTime), sort: at },
      { label: "Median, us", number: true, cell: (row) => us(row.timing.medianUs), sort: (row) => row.timing.medianUs },
      { label: "95 % interval, us", number: true, cell: (row) => `${us(row.timing.lowUs)} to ${us(row.timing.highUs)}` },
      { label: "Card", cell: (row) => row.deviceId },
      { label: "Driver", cell: (row) => row.dependencies?.driver ?? "" },
      { label: "Toolchain", cell: (row) => row.dependencies?.toolchain ?? "" },
      { label: "Source", cell: (row) => short(row.dependencies?.sourceHash) },
      { label: "SM clock, MHz", number: true, cell: (row) => row.timing.smClockMhz || "" },
    ],
  });
}

export function nightsFigure({ problem, retimings, reference, baselines, marks, withBaselines }) {
  const cards = [...byCard(retimings)];
  const sorted = cards.flatMap(([, each]) => each).sort((a, b) => at(a) - at(b));
  const time = span(sorted);
  const values = range(sorted, reference, withBaselines ? baselines : []);
  const shown = baselines.filter(({ medianUs }) => medianUs >= values.low && medianUs <= values.high);
  const level = (value) => [{ x: time.low, y: value }, { x: time.high, y: value }];

  const build = (palette) => {
    const datasets = [];
    if (reference) {
      datasets.push(line(level(reference * (1 - NOISE))), line(level(reference * (1 + NOISE)), { fill: "-1", backgroundColor: palette.noise }));
      datasets.push(line(level(reference), { borderColor: palette.muted, borderWidth: 1, borderDash: [2, 3] }));
    }
    cards.forEach(([, each], index) => datasets.push(...cardSets(each, index, palette, values.high - 0.04 * (values.high - values.low))));
    shown.forEach(({ medianUs }, index) => datasets.push(line(level(medianUs), { borderColor: palette[SERIES[2 + (index % 4)]], borderWidth: 2, borderDash: [8, 4] })));
    return {
      type: "line",
      data: { datasets },
      plugins: [marksPlugin],
      options: {
        parsing: false,
        scales: { x: timeAxis(palette, time.low, time.high), y: { ...valueAxis(palette, "us"), min: values.low, max: values.high } },
        plugins: {
          marks: { marks: marks.map((mark, index) => ({ x: Date.parse(mark.time), label: letter(index), color: palette.warn, on: palette.surface })) },
          tooltip: { callbacks: { title: (items) => (items.length ? moment(items[0].raw.x) : ""), label: tooltipLines } },
        },
      },
    };
  };

  const last = sorted.at(-1);
  const keys = [
    ...cards.map(([card, each], index) => legendKey(SERIES[index % 2], `median on ${each[0].deviceId}`, cards.length > 1 && card !== each[0].deviceId ? ` (${card})` : "")),
    legendKey("band", "95 % interval"),
    reference ? legendKey("noise", `±${100 * NOISE} % around the reference, ${us(reference)} us`) : null,
    ...baselines.map((baseline) => {
      const index = shown.indexOf(baseline);
      return legendKey(index < 0 ? "dashed" : `dashed ${SERIES[2 + (index % 4)]}`, `${baseline.contender} ${us(baseline.medianUs)} us`, index < 0 ? h("span", { class: "muted" }, "(outside of the scale)") : "");
    }),
    sorted.some(({ timing }) => timing.contended) ? legendKey("cross", "another process was on the card; it settles nothing, and may lie higher") : null,
    marks.length ? legendKey("mark", "something changed, see below") : null,
  ];
  return chartFigure({
    key: "nights",
    label: `Time by night of ${problem}: ${sorted.length} times, the last ${us(last.timing.medianUs)} us on ${moment(last.finishTime)}`,
    build,
    keys,
    rows: () => nightRows(sorted),
    height: "tall",
  });
}

export function marksTable(marks) {
  if (marks.length === 0) return h("p", { class: "muted" }, "Driver, toolchain, sources, card and variant were the same in all these nights.");
  const rows = marks.map((mark, index) => ({ ...mark, label: letter(index) })).reverse();
  return table({
    caption: "What changed, newest first",
    rows,
    columns: [
      { label: "Mark", cell: (row) => h("strong", {}, row.label) },
      { label: "When", cell: (row) => when(row.time), sort: (row) => row.time },
      { label: "What", class: "text", cell: (row) => h("ul", { class: "plain" }, row.changes.map((change) => h("li", {}, changeWords(change)))) },
      { label: "Why", class: "text", optional: true, cell: (row) => row.why ?? "" },
    ],
  });
}
