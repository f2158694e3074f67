// What a problem's nights say: marks where something changed between two of them. Pure functions.
import { parseVariant } from "./variants.js";

const byTime = (a, b) => Date.parse(a.time) - Date.parse(b.time);

const cardOf = (retiming) => retiming.deviceUuid || retiming.deviceId || "";

// Retimings of one class, oldest first; thinned ones have no order among those of one moment.
export function oldestFirst(retimings) {
  return [...retimings].sort((a, b) => Date.parse(a.finishTime) - Date.parse(b.finishTime));
}

// {card: retimings}, oldest first.
export function byCard(retimings) {
  const cards = new Map();
  for (const retiming of oldestFirst(retimings)) {
    if (!cards.has(cardOf(retiming))) cards.set(cardOf(retiming), []);
    cards.get(cardOf(retiming)).push(retiming);
  }
  return cards;
}

// [{time, changes: [{what, from, to}], why}]: driver, toolchain and card from the nights, source from nights of one
// family, variant from the incumbents. Changes of one night stand together.
export function marksOf(retimings, incumbents) {
  const marks = [];
  const sources = new Map();
  let before = null;
  for (const retiming of oldestFirst(retimings)) {
    const { driver = "", toolchain = "", sourceHash = "" } = retiming.dependencies ?? {};
    const family = parseVariant(retiming.variant).family;
    const now = { driver, toolchain, card: cardOf(retiming) };
    const changes = [];
    for (const what of before ? ["driver", "toolchain", "card"] : []) {
      if (now[what] !== before[what]) changes.push({ what, from: before[what], to: now[what] });
    }
    if (sources.has(family) && sources.get(family) !== sourceHash) {
      changes.push({ what: "source", from: sources.get(family), to: sourceHash });
    }
    sources.set(family, sourceHash);
    before = now;
    if (changes.length) marks.push({ time: retiming.finishTime, changes });
  }
  const history = [...incumbents].sort((a, b) => Date.parse(a.promoteTime) - Date.parse(b.promoteTime));
  history.forEach((incumbent, index) => {
    const from = index ? history[index - 1].trial?.variant?.text : "";
    const to = incumbent.trial?.variant?.text ?? "";
    if (index && from !== to) marks.push({ time: incumbent.promoteTime, changes: [{ what: "variant", from, to }], why: incumbent.why });
  });
  return joined(marks.sort(byTime));
}

// Within six hours it was one night.
function joined(marks) {
  const nights = [];
  for (const mark of marks) {
    const last = nights.at(-1);
    if (last && Date.parse(mark.time) - Date.parse(last.time) < 6 * 36e5) {
      last.changes.push(...mark.changes);
      last.why ??= mark.why;
    } else {
      nights.push({ ...mark, changes: [...mark.changes] });
    }
  }
  return nights;
}

// 0 -> "A", 25 -> "Z", 26 -> "AA"
export function letter(index) {
  return (index >= 26 ? letter(Math.floor(index / 26) - 1) : "") + String.fromCharCode(65 + (index % 26));
}
