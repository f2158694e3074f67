// What Health says of trends, sweeps and baselines. Pure functions.
import { geometricMean } from "./format.js";

export const LATELY_DAYS = 7;

export function lostUs(trend) {
  return (trend.latest?.medianUs ?? 0) - (trend.reference?.medianUs ?? 0);
}

// When each class was last timed at all: {fingerprint: ms}.
function newest(trends) {
  const times = {};
  for (const { deviceClass, latestTime } of trends) {
    times[deviceClass] = Math.max(times[deviceClass] ?? 0, Date.parse(latestTime) || 0);
  }
  return times;
}

// Trends by what is to be done about them. What its class' nights have passed over for a week stands apart, but a
// regression remains one until it is timed again.
export function sortTrends(trends) {
  const groups = { SLOWER: [], AMBIGUOUS: [], MOVED: [], NOT_TIMED: [], FASTER: [], SAME: [] };
  const last = newest(trends);
  for (const trend of trends) {
    const state = (trend.state ?? "").replace("STATE_", "");
    const late = Date.parse(trend.latestTime) < last[trend.deviceClass] - LATELY_DAYS * 864e5;
    const group = state !== "SLOWER" && (late || !(state in groups)) ? "NOT_TIMED" : state;
    groups[group].push(trend);
  }
  groups.SLOWER.sort((a, b) => lostUs(b) - lostUs(a));
  groups.FASTER.sort((a, b) => lostUs(a) - lostUs(b));
  for (const name of ["AMBIGUOUS", "MOVED"]) groups[name].sort((a, b) => Math.abs(b.change ?? 0) - Math.abs(a.change ?? 0));
  return groups;
}

const keyOf = (entry, deviceClass) => `${deviceClass} ${entry.policy} ${entry.problemText}`;

// Of each class, policy and contender: the geometric mean of its time over the served one, of how many problems, and
// those left out. `classOf` maps a device's id to its class. Newer baselines of the same name replace older ones.
export function meansAgainstBaselines(trends, baselines, classOf) {
  const served = new Map(trends.filter((trend) => trend.served?.medianUs > 0).map((trend) => [keyOf(trend, trend.deviceClass), trend]));
  const groups = new Map();
  const seen = new Set();
  const newestFirst = [...baselines].sort((a, b) => Date.parse(b.recordTime) - Date.parse(a.recordTime));
  for (const baseline of newestFirst) {
    const deviceClass = classOf.get(baseline.deviceId);
    const key = keyOf(baseline, deviceClass);
    const trend = served.get(key);
    if (!trend || !(baseline.medianUs > 0) || seen.has(`${key} ${baseline.contender}`)) continue;
    seen.add(`${key} ${baseline.contender}`);
    const name = `${deviceClass} ${baseline.policy} ${baseline.contender}`;
    if (!groups.has(name)) groups.set(name, { deviceClass, classAlias: trend.classAlias, policy: baseline.policy, contender: baseline.contender, ratios: new Map() });
    groups.get(name).ratios.set(baseline.problemText, baseline.medianUs / trend.served.medianUs);
  }
  return [...groups.values()].map((group) => {
    const ratios = [...group.ratios.values()];
    const all = trends.filter((trend) => trend.deviceClass === group.deviceClass && trend.policy === group.policy);
    return {
      ...group,
      mean: geometricMean(ratios),
      slowest: Math.min(...ratios),
      behind: [...group.ratios].filter(([, ratio]) => ratio < 1).sort((a, b) => a[1] - b[1]),
      covered: ratios.length,
      of: all.length,
      excluded: all.map((trend) => trend.problemText).filter((problem) => !group.ratios.has(problem)),
    };
  }).sort((a, b) => (a.classAlias ?? "").localeCompare(b.classAlias ?? "") || a.mean - b.mean);
}

export function deviceClasses(devices, trends) {
  const classOf = new Map();
  for (const trend of trends) {
    for (const id of [trend.deviceId, trend.latestDeviceId]) if (id) classOf.set(id, trend.deviceClass);
  }
  for (const device of devices) classOf.set(device.id, device.fingerprint);
  return classOf;
}

// Of a sweep's rows: what to look at first.
export const OUTCOMES = ["SLOWER", "FAILED", "AMBIGUOUS", "SKIPPED", "MOVED", "FASTER", "NEW", "SAME"];

// The share by which a sweep's row is slower than before; NaN where there is nothing to compare.
export const rowChange = (row) => (row.beforeUs > 0 && row.afterUs > 0 ? row.afterUs / row.beforeUs - 1 : NaN);

// {outcome: rows} of a sweep's report.
export function rowsByOutcome(rows) {
  const groups = {};
  for (const row of rows ?? []) (groups[(row.outcome ?? "").replace("OUTCOME_", "")] ??= []).push(row);
  return groups;
}
