// Command lines that do again what a page shows, and a button that copies one.
import { h } from "./dom.js";
import { policyName, policyWord } from "./format.js";

// As a POSIX shell takes it as one word.
export function quote(word) {
  return /^[A-Za-z0-9_./:=,@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function line(words, device, policy) {
  const all = ["attune", ...words];
  if (device) all.push("--device", device);
  if (policyWord(policy) !== "hot") all.push("--policy", policyWord(policy));
  return all.map(quote).join(" ");
}

export const tuneCommand = (problem, device, policy) => line(["tune", problem], device, policy);
export const explainCommand = (problem, device, policy) => line(["explain", problem], device, policy);
export const historyCommand = (problem, device, policy) => line(["history", problem, "--times"], device, policy);
export const evaluateCommand = (problem, variant, device, policy) => line(["evaluate", problem, variant], device, policy);
export const rollBackCommand = (problem, to, device, policy) =>
  line(["rollback", problem, ...(to ? ["--to", to] : [])], device, policy);

// Sides as Compare's form has them: {end_time: "2026-11-30", device_id, toolchain, driver, family}.
export function compareCommand(from, to, policy) {
  const keys = { end_time: "date", device_id: "device", toolchain: "toolchain", driver: "driver", family: "family" };
  const side = (values) => Object.entries(keys).filter(([field]) => values[field]).map(([field, key]) => `${key}=${values[field]}`).join(",") || "now";
  return line(["compare", side(from), side(to)], "", policy ? policyName(policy) : "");
}
export const watchCommand = (operation) => line(["watch", operation]);
export const cancelCommand = (operation) => line(["cancel", operation]);

// Of a trend: what times it again, says what bounds it and draws its nights. A time is one card's, so that card is named;
// answers are the class's.
export function trendCommands(trend) {
  const { problemText: problem, policy } = trend;
  const deviceClass = trend.classAlias || trend.deviceId;
  const here = trend.classAlias ? "" : " (no card of its class is on this host now)";
  const commands = [
    {
      label: `time what is served again, on the card that timed it${here}`,
      text: evaluateCommand(problem, trend.variant, trend.latestDeviceId || trend.deviceId, policy),
    },
    { label: "what bounds it", text: explainCommand(problem, deviceClass, policy) },
    { label: "every night's time", text: historyCommand(problem, deviceClass, policy) },
  ];
  if (trend.referenceVariant && trend.referenceVariant !== trend.variant) {
    commands.splice(1, 0, {
      label: `time what was fastest, against what is served${here}`,
      text: evaluateCommand(problem, trend.referenceVariant, trend.latestDeviceId || trend.deviceId, policy),
    });
  }
  return commands;
}

async function copy(text, code) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Not allowed here: select it, so that the reader's own key copies it.
    const range = document.createRange();
    range.selectNodeContents(code);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    return false;
  }
}

// A command with its button; `label` says what it does.
export function commandLine(text, label, key = text) {
  const code = h("code", {}, text);
  const said = h("span", { class: "said", role: "status" });
  const button = h(
    "button",
    {
      type: "button",
      class: "copy",
      "data-key": `copy/${key}`,
      "aria-label": `Copy the command: ${text}`,
      onclick: async () => {
        said.textContent = (await copy(text, code)) ? "copied" : "selected: copy with Ctrl+C";
        setTimeout(() => (said.textContent = ""), 2500);
      },
    },
    "Copy",
  );
  return h("div", { class: "command" }, label && h("span", { class: "what" }, label), h("div", { class: "line" }, code, button, said));
}
