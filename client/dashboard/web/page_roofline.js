// Each problem's arithmetic against its traffic, and how near it comes to the roofs.
import { get, list, repeat } from "./api.js";
import { chartFigure, legendKey, valueAxis } from "./charts.js";
import { commandLine } from "./commands.js";
import { fold, h, update } from "./dom.js";
import { counted, NONE, percent, short, si, us } from "./format.js";
import { empty, failure, loading, problemLink, section } from "./parts.js";
import { rooflinePoints, roofsOf, shareOfRoof } from "./roofline.js";
import { table } from "./table.js";

// Rows that are shown before the rest is folded away.
const SHOWN = 12;

function roofLines(points, roofs) {
  const intensities = points.map((point) => point.intensity);
  const [low, high] = [Math.min(...intensities) / 2, Math.max(...intensities) * 2];
  const memory = (bandwidth) => {
    const ridge = roofs.reachedFlops / bandwidth;
    const ends = ridge > low && ridge < high ? [low, ridge, high] : [low, high];
    return ends.map((x) => ({ x, y: Math.min(x * bandwidth, Math.max(roofs.reachedFlops, low * bandwidth)) }));
  };
  return {
    theoretical: roofs.bandwidth ? [low, Math.min(high, Math.max(low * 1.01, (1.15 * roofs.reachedFlops) / roofs.bandwidth))].map((x) => ({ x, y: x * roofs.bandwidth })) : [],
    reached: memory(roofs.reachedBytes),
    ends: { min: low, max: high },
  };
}

function figure(name, points, roofs) {
  const lines = roofLines(points, roofs);
  const memoryBound = (point) => point.intensity * (roofs.bandwidth || roofs.reachedBytes) < roofs.reachedFlops;
  const build = (palette) => {
    const set = (of, color, pointStyle) => ({ data: of.map((point) => ({ x: point.intensity, y: point.flops, point })), backgroundColor: color, borderColor: color, pointRadius: 4.5, pointStyle });
    const roof = (data, color, borderDash) => ({ type: "line", data, borderColor: color, borderWidth: 2, borderDash, pointRadius: 0, pointHitRadius: 0, silent: true });
    const axis = (title, unit, ends = {}) => ({ ...valueAxis(palette, title, { type: "logarithmic", ...ends }), ticks: { color: palette.muted, maxTicksLimit: 8, callback: (value) => (/^[125]e/.test(value.toExponential()) ? (unit ? si(value, unit) : String(value)) : null) } });
    return {
      type: "scatter",
      data: {
        datasets: [
          set(points.filter(memoryBound), palette.series1, "circle"),
          set(points.filter((point) => !memoryBound(point)), palette.series2, "triangle"),
          roof(lines.theoretical, palette.text, [8, 4]),
          roof(lines.reached, palette.series3, []),
        ],
      },
      options: {
        parsing: false,
        scales: { x: axis("FLOP a byte", "", lines.ends), y: axis("reached", "FLOP/s", { min: Math.min(...points.map((point) => point.flops)) / 1.5, max: 1.4 * roofs.reachedFlops }) },
        plugins: { tooltip: { callbacks: { title: (items) => items[0]?.raw.point?.trend.problemText ?? "", label: ({ raw: { point } }) => [`${us(point.trend.served.medianUs)} us: ${si(point.flops, "FLOP/s")}, ${si(point.bytes, "B/s")}`, `${percent(shareOfRoof(point, roofs))} of the roof above it`] } } },
      },
    };
  };
  const keys = [
    legendKey("dot", "left of the ridge: memory is its roof (circles)"),
    legendKey("tri", "right of it: arithmetic is (triangles)"),
    roofs.bandwidth ? legendKey("dashed roof", `theoretical bandwidth, ${si(roofs.bandwidth, "B/s")}`) : h("span", {}, "the theoretical bandwidth is unknown"),
    legendKey("series3", `best reached here: ${si(roofs.reachedBytes, "B/s")} and ${si(roofs.reachedFlops, "FLOP/s")}`),
  ];
  return chartFigure({ key: `roofline/${name}`, label: `Roofline of ${name}: ${points.length} problems, arithmetic reached against flop a byte`, build, keys, height: "tall" });
}

function pointsTables(name, points, roofs) {
  const sorted = [...points].sort((a, b) => shareOfRoof(a, roofs) - shareOfRoof(b, roofs));
  const rest = sorted.slice(SHOWN);
  return [
    h("h3", {}, "Farthest from their roof"),
    pointsTable(name, sorted.slice(0, SHOWN), roofs),
    rest.length ? fold(`rest/${name}`, `${counted(rest.length, "problem")} nearer to it`, () => pointsTable(`${name}, the rest`, rest, roofs)) : null,
  ];
}

function pointsTable(name, rows, roofs) {
  return table({
    caption: `Problems of ${name}, farthest from their roof first`,
    key: name,
    rows,
    columns: [
      { label: "Problem", class: "wide", cell: ({ trend }) => problemLink(trend.problemText, trend.classAlias || trend.deviceClass, trend.policy), sort: ({ trend }) => trend.problemText },
      { label: "Served, us", number: true, cell: ({ trend }) => us(trend.served.medianUs), sort: ({ trend }) => trend.served.medianUs },
      { label: "FLOP a byte", number: true, cell: (point) => (point.intensity >= 100 ? point.intensity.toFixed(0) : point.intensity.toPrecision(3)), sort: (point) => point.intensity },
      { label: "Arithmetic", number: true, cell: (point) => si(point.flops, "FLOP/s"), sort: (point) => point.flops },
      { label: "Memory", number: true, cell: (point) => si(point.bytes, "B/s"), sort: (point) => point.bytes },
      { label: "Of theoretical bandwidth", number: true, cell: (point) => (roofs.bandwidth ? percent(point.bytes / roofs.bandwidth) : NONE), sort: (point) => point.bytes },
      { label: "Of its roof", number: true, cell: (point) => h("strong", {}, percent(shareOfRoof(point, roofs))), sort: (point) => shareOfRoof(point, roofs) },
    ],
  });
}

export function show({ root, signal }) {
  const body = h("div", {}, loading());
  root.append(h("h1", {}, "Roofline"), h("p", { class: "muted" }, "What a problem needs at least, flops and bytes, over the time it is served with. L2 may keep inputs of HOT problems, so that these pass the memory's roof."), body);
  repeat(
    60,
    async () => {
      const [trends, devices] = await Promise.all([list("trends", "trends", {}, signal), get("devices", {}, signal)]);
      return { trends: trends.items, devices: devices.devices ?? [] };
    },
    ({ trends, devices }) => {
      const points = rooflinePoints(trends.filter((trend) => trend.policy === "POLICY_HOT" || !trends.some((other) => other.policy === "POLICY_HOT")));
      if (points.length === 0) {
        update(body, empty("Nothing is served yet whose needs are known.", commandLine("attune tune b2.h8.q512.d64.f16", "tune a problem")));
        return;
      }
      const size = (deviceClass) => points.filter((point) => point.trend.deviceClass === deviceClass).length;
      const classes = [...new Set(points.map((point) => point.trend.deviceClass))].sort((a, b) => size(b) - size(a));
      update(body, classes.map((deviceClass, index) => {
        const of = points.filter((point) => point.trend.deviceClass === deviceClass);
        const device = devices.find((each) => each.fingerprint === deviceClass);
        const roofs = roofsOf(of, device);
        const name = of[0].trend.classAlias || short(deviceClass);
        return section(`class-${index}`, device ? `${name}: ${device.model}` : `${name}: not on this host`, figure(name, of, roofs), pointsTables(name, of, roofs));
      }));
    },
    (error) => update(body, failure(error)),
    signal,
  );
}
