// A curve the size of a word, with its interval as a band: SVG, so that it follows the theme and prints.
import { svg } from "./dom.js";
import { date, us } from "./format.js";

const WIDTH = 200;
const HEIGHT = 44;
const MARGIN = 3;

// A night with another process on the card may take several times as long: such peaks are cut, so that the rest is seen.
// Pure. What came last is never cut, nor what lasted for a tenth of the time.
export function scaleOf(points, referenceUs) {
  const at = (values, share) => [...values].sort((a, b) => a - b)[Math.round(share * (values.length - 1))];
  const last = points.at(-1);
  const bottom = Math.min(at(points.map((point) => point.lowUs || point.medianUs), 0.02), last.medianUs, referenceUs || Infinity);
  const top = Math.max(at(points.map((point) => point.medianUs), 0.9), last.highUs || last.medianUs, referenceUs || 0);
  const margin = 0.15 * (top - bottom);
  return { bottom: bottom - margin, top: top + margin };
}

// points: [{time, medianUs, lowUs, highUs}], oldest first. A dashed line at `referenceUs`, a mark at `since`.
export function sparkline(points, { referenceUs, since, label } = {}) {
  const drawn = (points ?? []).filter((point) => point.medianUs > 0);
  if (drawn.length < 2) return null;
  const times = drawn.map((point) => Date.parse(point.time));
  const lows = drawn.map((point) => point.lowUs || point.medianUs);
  const highs = drawn.map((point) => point.highUs || point.medianUs);
  const { bottom, top } = scaleOf(drawn, referenceUs);
  const [first, last] = [times[0], times.at(-1)];
  const x = (time) => MARGIN + ((WIDTH - 2 * MARGIN) * (time - first)) / (last - first || 1);
  const y = (value) => HEIGHT - MARGIN - ((HEIGHT - 2 * MARGIN) * (Math.min(top, Math.max(bottom, value)) - bottom)) / (top - bottom || 1);
  const place = (time, value) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`;
  const band = [
    ...highs.map((value, index) => place(times[index], value)),
    ...lows.map((value, index) => place(times[index], value)).reverse(),
  ];
  const words = `${label ? `${label}: ` : ""}${us(drawn[0].medianUs)} us on ${date(drawn[0].time)}, ${us(drawn.at(-1).medianUs)} us on ${date(drawn.at(-1).time)}, between ${us(Math.min(...lows))} and ${us(Math.max(...highs))} us`;
  const parts = [
    svg("title", {}, words),
    svg("polygon", { class: "band", points: band.join(" ") }),
  ];
  if (referenceUs > 0) parts.push(svg("line", { class: "reference", x1: MARGIN, x2: WIDTH - MARGIN, y1: y(referenceUs), y2: y(referenceUs) }));
  const from = Date.parse(since);
  if (from > first && from <= last) parts.push(svg("line", { class: "since", x1: x(from), x2: x(from), y1: 0, y2: HEIGHT }));
  parts.push(svg("polyline", { class: "median", points: drawn.map((point, index) => place(times[index], point.medianUs)).join(" ") }));
  parts.push(svg("circle", { class: "last", cx: x(last), cy: y(drawn.at(-1).medianUs), r: 2.5 }));
  return svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words, width: WIDTH, height: HEIGHT }, parts);
}
