// Parallel coordinates on a canvas: an axis for each parameter and one, logarithmic, for the time; a line for each variant.
// An axis is brushed by dragging along it; who has no pointer uses the lists that the page has for the same.
import { colors } from "./charts.js";
import { h } from "./dom.js";
import { us } from "./format.js";
import { passes } from "./space.js";

const TOP = 34;
const BOTTOM = 26;
const SIDE = 46;

// Axes with a position from 0 (bottom) to 1 for a value, and back.
function scales(axes, points) {
  const times = points.map((point) => point.us);
  const [low, high] = [Math.log(Math.min(...times)), Math.log(Math.max(...times))];
  const time = {
    name: "us",
    label: "time, us",
    place: (value) => (high > low ? (Math.log(value) - low) / (high - low) : 0.5),
    value: (place) => Math.exp(low + place * (high - low)),
    ticks: [0, 0.25, 0.5, 0.75, 1].map((place) => ({ place, text: us(Math.exp(low + place * (high - low))) })),
  };
  const others = axes.map(({ name, values }) => {
    const step = values.length > 1 ? 1 / (values.length - 1) : 0;
    return {
      name,
      label: name,
      place: (value) => values.indexOf(value) * step,
      value: (place) => place / step,
      values,
      ticks: values.map((value, index) => ({ place: index * step, text: String(value) })),
    };
  });
  return [...others, time];
}

// From a share of the axis' height to the brush's values: those of the parameter between, or times.
function brushOf(axis, from, to) {
  const [low, high] = [Math.min(from, to), Math.max(from, to)];
  if (!axis.values) return [axis.value(low), axis.value(high)];
  const inside = axis.values.filter((value) => axis.place(value) >= low - 1e-9 && axis.place(value) <= high + 1e-9);
  return inside.length ? [inside[0], inside.at(-1)] : null;
}

// `points` are those shown, fastest first; `brushes` {axis: [low, high]} is changed by dragging, and `brushed()` called.
export function parallelCoordinates({ axes, points, brushes, brushed, label }) {
  const canvas = h("canvas", { role: "img", "aria-label": label });
  const all = scales(axes, points);
  let drag = null;

  const xOf = (index) => SIDE + ((canvas.clientWidth - 2 * SIDE) * index) / Math.max(1, all.length - 1);
  const yOf = (place) => canvas.clientHeight - BOTTOM - (canvas.clientHeight - TOP - BOTTOM) * place;
  const placeOf = (y) => Math.max(0, Math.min(1, (canvas.clientHeight - BOTTOM - y) / (canvas.clientHeight - TOP - BOTTOM)));

  const line = (context, point) => {
    context.beginPath();
    all.forEach((axis, index) => {
      const value = axis.name === "us" ? point.us : point.values[axis.name];
      const [x, y] = [xOf(index), yOf(axis.place(value))];
      if (index) context.lineTo(x, y);
      else context.moveTo(x, y);
    });
    context.stroke();
  };

  const draw = () => {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const palette = colors();
    const inside = points.filter((point) => passes(point, brushes));
    context.lineWidth = 1;
    context.globalAlpha = 0.25;
    context.strokeStyle = palette.border;
    for (const point of points) if (!inside.includes(point)) line(context, point);
    // The slowest first, so that the fastest lie on top: from faint to full by rank.
    for (let rank = inside.length - 1; rank >= 0; --rank) {
      const share = inside.length > 1 ? 1 - rank / (inside.length - 1) : 1;
      context.globalAlpha = 0.12 + 0.6 * share ** 2;
      context.lineWidth = rank ? 1.2 : 3;
      context.strokeStyle = rank === 0 ? palette.bad : share > 0.5 ? palette.series1 : palette.series5;
      if (rank === 0) context.globalAlpha = 1;
      line(context, inside[rank]);
    }
    context.globalAlpha = 1;
    axesOn(context, palette);
  };

  const axesOn = (context, palette) => {
    context.font = "12px sans-serif";
    all.forEach((axis, index) => {
      const x = xOf(index);
      context.strokeStyle = palette.text;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x, yOf(0));
      context.lineTo(x, yOf(1));
      context.stroke();
      context.fillStyle = palette.text;
      context.textAlign = "center";
      // Neighbours' names at two heights: long ones do not run into each other.
      context.font = "600 12px sans-serif";
      context.fillText(axis.label, x, index % 2 ? 26 : 12, canvas.clientWidth / all.length + 60);
      context.font = "12px sans-serif";
      context.textAlign = "left";
      for (const tick of axis.ticks) {
        const width = context.measureText(tick.text).width;
        context.globalAlpha = 0.8;
        context.fillStyle = palette.surface;
        context.fillRect(x + 4, yOf(tick.place) - 7, width + 4, 14);
        context.globalAlpha = 1;
        context.fillStyle = palette.text;
        context.fillText(tick.text, x + 6, yOf(tick.place) + 4);
      }
      const brush = drag?.axis === axis ? [drag.from, drag.to].sort((a, b) => a - b) : (brushes[axis.name] ?? null)?.map(axis.place);
      if (brush) {
        const margin = axis.values && drag?.axis !== axis ? 0.02 : 0;
        const [low, high] = [Math.max(0, brush[0] - margin), Math.min(1, brush[1] + margin)];
        context.fillStyle = palette.band;
        context.fillRect(x - 8, yOf(high), 16, yOf(low) - yOf(high));
        context.strokeStyle = palette.accent;
        context.strokeRect(x - 8, yOf(high), 16, yOf(low) - yOf(high));
      }
    });
  };

  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  canvas.addEventListener("pointerdown", (event) => {
    const { x, y } = position(event);
    const index = all.findIndex((_, at) => Math.abs(xOf(at) - x) < 14);
    if (index < 0) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { axis: all[index], from: placeOf(y), to: placeOf(y) };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    drag.to = placeOf(position(event).y);
    draw();
  });
  canvas.addEventListener("pointerup", () => {
    if (!drag) return;
    const { axis, from, to } = drag;
    drag = null;
    // A click without a drag lifts the brush.
    const brush = Math.abs(from - to) > 0.01 ? brushOf(axis, from, to) : null;
    if (brush) brushes[axis.name] = brush;
    else delete brushes[axis.name];
    brushed();
  });
  const observer = new ResizeObserver(() => (canvas.isConnected ? draw() : observer.disconnect()));
  observer.observe(canvas);
  const onTheme = () => (canvas.isConnected ? draw() : document.removeEventListener("themechange", onTheme));
  document.addEventListener("themechange", onTheme);
  return h("div", { class: "parallel" }, canvas);
}
