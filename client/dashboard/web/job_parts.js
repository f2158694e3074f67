// What Jobs and Job show of an operation: progress, verdicts, the best so far.
import { h, svg } from "./dom.js";
import { count, counted, durationText, enumName, enumWord, moment, percent, seconds, us } from "./format.js";
import { bestSoFar, share, trialsPerSecond } from "./jobs.js";
import { facts, jobLink, when } from "./parts.js";

const KINDS = { OK: "ok", INFEASIBLE: "quiet", LOST: "quiet", SLOW: "quiet", UNSTABLE: "warn", TIMEOUT: "warn" };

// A bar of the shares, and their figures as words.
export function verdictMix(verdicts) {
  const shown = (verdicts ?? []).filter(({ count: of }) => Number(of) > 0);
  if (shown.length === 0) return null;
  const total = shown.reduce((sum, { count: of }) => sum + Number(of), 0);
  const bar = h("div", { class: "mix", "aria-hidden": "true" }, shown.map(({ verdict, count: of }) => {
    const part = h("span", { class: KINDS[enumName(verdict, "VERDICT_")] ?? "bad" });
    part.style.width = `${(100 * Number(of)) / total}%`;
    return part;
  }));
  const words = shown.map(({ verdict, count: of }) => `${enumName(verdict, "VERDICT_")} ${count(of)} (${percent(Number(of) / total)})`);
  return h("div", {}, bar, h("p", { class: "muted small" }, words.join(" · ")));
}

export function progressBar(operation) {
  const progress = operation.progress ?? {};
  const sweep = Number(progress.problemsTotal ?? 0) > 0;
  const [done, total, noun] = sweep ? [progress.problemsDone, progress.problemsTotal, "problems"] : [progress.trialsDone, progress.trialsTotal, "trials"];
  const part = share(done, total);
  const words = Number(total) > 0 ? `${count(done)} of ${count(total)} ${noun} (${percent(part)})` : noun === "trials" && Number(done) > 0 ? `${counted(done, "trial")}` : "";
  return h("div", {}, Number.isFinite(part) ? h("progress", { class: "bar", max: "1", value: String(part), "aria-label": words }) : null, h("div", {}, words));
}

export function progressFacts(operation) {
  const progress = operation.progress ?? {};
  const rate = trialsPerSecond(progress);
  const waits = progress.waitsFor ? [jobLink(progress.waitsFor, progress.waitsForTitle || progress.waitsFor), ` (${counted(progress.queuePosition ?? 1, "operation")} ahead)`] : null;
  return facts([
    ["phase", operation.state === "STATE_RUNNING" ? enumWord(progress.phase, "PHASE_") : null],
    ["card", progress.deviceId],
    ["waits for", waits],
    ["trials a second", Number.isFinite(rate) ? rate.toPrecision(3) : null],
    ["known before", Number(progress.trialsReused) ? counted(progress.trialsReused, "trial") : null],
    ["compiled", Number(progress.compilesTotal) ? `${count(progress.compilesDone)} of ${count(progress.compilesTotal)}` : null],
    ["card busy", progress.deviceBusy ? percent(progress.deviceBusy) : null],
    ["elapsed", Number.isFinite(seconds(progress.elapsed)) ? durationText(seconds(progress.elapsed)) : null],
    ["left, about", operation.done ? null : Number.isFinite(seconds(progress.eta)) ? durationText(seconds(progress.eta)) : null],
    ["started", when(operation.createTime)],
    ["by", operation.principal],
    ["says", operation.done ? null : progress.message],
  ]);
}

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [600, 150, 56, 22, 10];

// Steps down whenever a trial was faster than all before it; dots are the trials.
export function bestCurve(trials) {
  const steps = bestSoFar(trials);
  if (steps.length === 0) return null;
  const ok = trials.filter((trial) => trial.verdict === "VERDICT_OK" && trial.timing?.medianUs > 0);
  const times = ok.map((trial) => Date.parse(trial.finishTime));
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const best = steps.at(-1).us;
  // Slow variants would press the curve to the bottom: what is above three times the best stands at the top.
  const top = Math.min(Math.max(...ok.map((trial) => trial.timing.medianUs)), 3 * best);
  const [low, high] = [Math.log(best * 0.97), Math.log(top * 1.03)];
  const x = (time) => LEFT + ((WIDTH - LEFT - 8) * (time - first)) / (last - first || 1);
  const y = (value) => TOP + ((HEIGHT - TOP - BOTTOM) * (high - Math.log(Math.min(value, top)))) / (high - low || 1);
  const path = [];
  steps.forEach((step, index) => {
    if (index) path.push(`H${x(step.time).toFixed(1)}`);
    path.push(`${index ? "V" : `M${x(step.time).toFixed(1)},`}${y(step.us).toFixed(1)}`);
  });
  path.push(`H${x(last).toFixed(1)}`);
  const words = `Best so far: ${us(steps[0].us)} us at first, ${us(best)} us after ${counted(ok.length, "trial")}; it improved ${counted(steps.length - 1, "time")}`;
  const label = (value) => svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, us(value));
  return h(
    "figure",
    { class: "best" },
    svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words, class: "curve" },
      svg("line", { class: "axis", x1: LEFT, x2: LEFT, y1: TOP, y2: HEIGHT - BOTTOM }),
      svg("line", { class: "axis", x1: LEFT, x2: WIDTH, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }),
      label(top),
      y(best) - y(top) > 16 ? label(best) : "",
      svg("text", { x: LEFT, y: HEIGHT - 6 }, moment(first).slice(11, 16)),
      svg("text", { x: WIDTH - 4, y: HEIGHT - 6, "text-anchor": "end" }, moment(last).slice(11)),
      ok.slice(-400).map((trial) => svg("circle", { class: "trial", cx: x(Date.parse(trial.finishTime)).toFixed(1), cy: y(trial.timing.medianUs).toFixed(1), r: 2 })),
      svg("path", { class: "median", d: path.join("") }),
    ),
    h("figcaption", {}, words, "."),
  );
}
