// What jobs' trials and progress say. Pure functions.
import { seconds } from "./format.js";

export const isTune = (operation) => Boolean(operation.problem);

// Trials that it ran itself, a second; NaN while nothing is known.
export function trialsPerSecond({ trialsDone, trialsReused, elapsed } = {}) {
  const ran = Number(trialsDone ?? 0) - Number(trialsReused ?? 0);
  const took = seconds(elapsed);
  return ran > 0 && took > 0 ? ran / took : NaN;
}

export function share(done, total) {
  return Number(total) > 0 ? Math.min(1, Number(done ?? 0) / Number(total)) : NaN;
}

// [{time, us, trial}]: each trial that was faster than all before it.
export function bestSoFar(trials) {
  const ok = trials.filter((trial) => trial.verdict === "VERDICT_OK" && trial.timing?.medianUs > 0);
  ok.sort((a, b) => Date.parse(a.finishTime) - Date.parse(b.finishTime));
  const steps = [];
  for (const trial of ok) {
    if (steps.length && trial.timing.medianUs >= steps.at(-1).us) continue;
    steps.push({ time: Date.parse(trial.finishTime), us: trial.timing.medianUs, trial });
  }
  return steps;
}

export function verdictCounts(trials) {
  const counts = new Map();
  for (const { verdict } of trials) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  return [...counts].map(([verdict, count]) => ({ verdict, count })).sort((a, b) => b.count - a.count);
}

// Newer lists of a job's newest trials, put together with those that are known.
export function mergeTrials(known, newest) {
  const byName = new Map(known.map((trial) => [trial.name, trial]));
  for (const trial of newest) byName.set(trial.name, trial);
  return [...byName.values()];
}
