// The space of a problem's variants, as its trials show it. Pure functions.
import { parametersOf } from "./variants.js";

// Right as far as it was checked: SLOW was given up, but after a run that was right.
export const isRight = (trial) => trial.verdict === "VERDICT_OK" || trial.verdict === "VERDICT_SLOW";
const isTimed = (trial) => isRight(trial) && trial.timing?.medianUs > 0;

// The families, most tried first.
export function familiesOf(trials) {
  const counts = new Map();
  for (const { variant } of trials) counts.set(variant?.family ?? "", (counts.get(variant?.family ?? "") ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([family]) => family);
}

// Trials of one family with their parameters as numbers, fastest first, those without a time last.
export function pointsOf(trials, family) {
  const points = trials
    .filter((trial) => (trial.variant?.family ?? "") === family)
    .map((trial) => ({ trial, values: parametersOf(trial.variant), us: isTimed(trial) ? trial.timing.medianUs : NaN }));
  const ok = points.filter((point) => point.us > 0).sort((a, b) => a.us - b.us);
  return [...ok, ...points.filter((point) => !(point.us > 0))];
}

// [{name, values}] of the parameters that were tried with more than one value, in the manifest's order.
export function axesOf(points) {
  const values = new Map();
  for (const point of points) {
    for (const [name, value] of Object.entries(point.values)) {
      if (!values.has(name)) values.set(name, new Set());
      values.get(name).add(value);
    }
  }
  return [...values]
    .filter(([, set]) => set.size > 1)
    .map(([name, set]) => ({ name, values: [...set].sort((a, b) => a - b) }));
}

// Of points, fastest first, that share of those with a time; at least one.
export function topShare(points, share) {
  const ok = points.filter((point) => point.us > 0);
  return ok.slice(0, Math.max(1, Math.round(share * ok.length)));
}

// The fastest time with each value of a parameter: [{value, us, tried}].
export function bestByValue(points, { name, values }) {
  return values.map((value) => {
    const of = points.filter((point) => point.values[name] === value);
    const times = of.map((point) => point.us).filter((us) => us > 0);
    return { value, us: times.length ? Math.min(...times) : NaN, tried: of.length };
  });
}

// brushes: {axis: [low, high]}, inclusive; of the time the axis is "us".
export function passes(point, brushes) {
  return Object.entries(brushes).every(([name, [low, high]]) => {
    const value = name === "us" ? point.us : point.values[name];
    return value >= low && value <= high;
  });
}

// Cells [row of b][column of a]: {tried, ok, worst: [verdict, count]}.
export function verdictMap(points, a, b) {
  return b.values.map((y) =>
    a.values.map((x) => {
      const of = points.filter((point) => point.values[a.name] === x && point.values[b.name] === y);
      const bad = new Map();
      for (const { trial } of of) if (!isRight(trial)) bad.set(trial.verdict, (bad.get(trial.verdict) ?? 0) + 1);
      const worst = [...bad].sort((m, n) => n[1] - m[1])[0] ?? null;
      return { tried: of.length, ok: of.filter(({ trial }) => isRight(trial)).length, worst };
    }),
  );
}
