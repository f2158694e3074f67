// The variants of a problem: what each parameter does, how they go together, and why some do not work.
import { get, list, repeat } from "./api.js";
import { legendKey } from "./charts.js";
import { commandLine, evaluateCommand, tuneCommand } from "./commands.js";
import { fold, h, update } from "./dom.js";
import { count, counted, percent, us } from "./format.js";
import { verdictMix } from "./job_parts.js";
import { mergeTrials, verdictCounts } from "./jobs.js";
import { parallelCoordinates } from "./parallel.js";
import { className, empty, failure, loading, problemLink, section, variantCode } from "./parts.js";
import { addressOf } from "./router.js";
import { axesOf, familiesOf, passes, pointsOf, topShare } from "./space.js";
import { slices, verdictTable } from "./space_slices.js";
import { table } from "./table.js";
import { variantText } from "./variants.js";

const PAGE = 400;

// The fastest, and the newest with whatever verdict: between them the picture, within a page's size.
async function loadTrials(filter, token, signal) {
  const query = { filter, view: "TRIAL_VIEW_BASIC", page_size: PAGE };
  if (token) return { newest: await get("trials", { ...query, page_token: token }, signal), fastest: {} };
  const [fastest, newest] = await Promise.all([get("trials", { ...query, order: "ORDER_FASTEST" }, signal), get("trials", query, signal)]);
  return { fastest, newest };
}

function fastestTable(points, problem, device) {
  return table({
    caption: "Fastest variants",
    rows: points.slice(0, 20),
    columns: [
      { label: "Trial", cell: ({ trial }) => h("code", {}, trial.name) },
      { label: "Time, us", number: true, cell: (point) => us(point.us), sort: (point) => point.us },
      { label: "Variant", class: "text", cell: ({ trial }) => variantCode(variantText(trial.variant)) },
      { label: "Command", cell: ({ trial }) => fold(`evaluate/${trial.name}`, "evaluate it", () => commandLine(evaluateCommand(problem, variantText(trial.variant), device, trial.policy))) },
    ],
  });
}

export function show({ root, subject: problem, query, signal }) {
  const body = h("div", {}, loading());
  root.append(
    h("p", { class: "crumbs" }, h("a", { href: "#/health" }, "Health"), " / ", problem ? problemLink(problem, query.class) : "", " / space"),
    h("h1", {}, "Space of ", problem || "a problem"),
    body,
  );
  if (!problem) {
    update(body, empty("The address names no problem; Health lists them.", null));
    return;
  }
  const choice = { family: "", share: 20, a: 0, b: 1, brushes: {} };
  const state = { trials: [], next: "", trend: null, filter: null };

  const pick = (label, key, options, value, changed) =>
    h("label", {}, label, h("select", { "data-key": key, onchange: (event) => changed(event.target.value) }, options.map(([each, words]) => h("option", { value: each, selected: String(each) === String(value) }, words))));

  const brushControls = (axes) =>
    fold("brushes", "Restrict axes without a pointer", () =>
      h("div", { class: "controls" }, axes.map(({ name, values }) => {
        const set = (index) => (value) => {
          const brush = choice.brushes[name] ?? [values[0], values.at(-1)];
          brush[index] = Number(value);
          choice.brushes[name] = brush.sort((x, y) => x - y);
          drawParallel();
        };
        const [low, high] = choice.brushes[name] ?? [values[0], values.at(-1)];
        const options = values.map((value) => [value, String(value)]);
        return h("fieldset", {}, h("legend", {}, name), pick("from", `low/${name}`, options, low, set(0)), pick("to", `high/${name}`, options, high, set(1)));
      })));

  const parallelAt = h("div");
  const mapAt = h("div");
  let current = null;

  const drawParallel = () => {
    const { axes, points } = current;
    const top = topShare(points, choice.share / 100);
    const inside = top.filter((point) => passes(point, choice.brushes));
    const restricted = Object.keys(choice.brushes).length > 0;
    update(
      parallelAt,
      h("div", { class: "controls" },
        h("label", {}, `Fastest ${choice.share} %`, h("input", { type: "range", min: 1, max: 100, value: choice.share, "data-key": "share", onchange: (event) => { choice.share = Number(event.target.value); drawParallel(); } })),
        h("p", {}, `${counted(inside.length, "variant")} of the ${count(top.length)} fastest; drag along an axis to restrict it, click it to lift that.`),
        restricted ? h("button", { type: "button", "data-key": "lift", onclick: () => { choice.brushes = {}; drawParallel(); } }, "Lift all restrictions") : null),
      parallelCoordinates({
        axes, points: top, brushes: choice.brushes, brushed: drawParallel,
        label: `Parallel coordinates of ${top.length} variants over ${axes.map(({ name }) => name).join(", ")} and time. The table below lists the fastest.`,
      }),
      h("p", { class: "key-line" }, legendKey("fastest", "the fastest"), legendKey("series1", "the faster half of those shown"), legendKey("series5", "the slower half, fainter by rank")),
      brushControls(axes),
      h("h3", {}, "The fastest of them"),
      inside.length ? fastestTable(inside, problem, state.trend?.classAlias || state.trend?.deviceId) : h("p", {}, "No variant passes these restrictions."),
    );
  };

  const drawMap = () => {
    const { axes, points } = current;
    if (axes.length < 2) return update(mapAt, h("p", { class: "muted" }, "It needs two parameters with several values."));
    const options = axes.map(({ name }, index) => [index, name]);
    return update(
      mapAt,
      h("div", { class: "controls" },
        pick("Columns", "map/a", options, choice.a, (value) => { choice.a = Number(value); drawMap(); }),
        pick("Rows", "map/b", options, choice.b, (value) => { choice.b = Number(value); drawMap(); })),
      choice.a === choice.b ? h("p", {}, "Choose two different parameters.") : verdictTable(points, axes[choice.a], axes[choice.b]),
    );
  };

  const addOlder = async (event) => {
    event.target.disabled = true;
    try {
      const { newest } = await loadTrials(state.filter, state.next, signal);
      state.trials = mergeTrials(state.trials, newest.trials ?? []);
      state.next = newest.nextPageToken ?? "";
      draw();
    } catch (error) {
      if (error.name !== "AbortError") update(body, failure(error));
    }
  };

  const draw = () => {
    if (state.trials.length === 0) {
      update(body, empty(`No variant of ${problem} was tried here.`, commandLine(tuneCommand(problem, query.class), "try them")));
      return;
    }
    const families = familiesOf(state.trials);
    if (!families.includes(choice.family)) choice.family = pointsOf(state.trials, families[0]).length ? families[0] : "";
    const points = pointsOf(state.trials, choice.family);
    const axes = axesOf(points);
    current = { points, axes };
    choice.a = Math.min(choice.a, axes.length - 1);
    choice.b = Math.min(choice.b, axes.length - 1);
    const ok = points.filter((point) => point.us > 0);
    const verdicts = verdictCounts(points.map(({ trial }) => trial));
    update(
      body,
      h("div", { class: "controls" },
        pick("Family", "family", families.map((family) => [family, family]), choice.family, (value) => { Object.assign(choice, { family: value, brushes: {}, a: 0, b: 1 }); draw(); }),
        h("p", {}, `${counted(points.length, "trial")} of it, ${count(ok.length)} OK (${percent(ok.length / points.length)}). `,
          state.next ? [`The ${count(PAGE)} fastest and the newest of all are here. `, h("button", { type: "button", "data-key": "older", onclick: addOlder }, `Load ${count(PAGE)} older ones`)] : "These are all.")),
      verdictMix(verdicts),
      ok.length && axes.length
        ? [section("slices", "What each parameter does", slices(axes, points)), section("parallel", "How they go together", parallelAt)]
        : h("p", {}, ok.length ? "No parameter was tried with several values." : "No variant of it ended OK."),
      section("verdicts", "Where variants do not work", mapAt),
    );
    if (ok.length && axes.length) drawParallel();
    drawMap();
  };

  const load = async () => {
    const { items } = await list("trends", "trends", { problem }, signal, 1);
    state.trend = items.find((trend) => [trend.classAlias, trend.deviceClass].includes(query.class)) ?? items[0] ?? null;
    state.filter = { problem, device_class: state.trend?.deviceClass, policy: state.trend?.policy };
    const { fastest, newest } = await loadTrials(state.filter, "", signal);
    if (!state.next) state.next = newest.nextPageToken ?? "";
    state.trials = mergeTrials(state.trials, [...(fastest.trials ?? []), ...(newest.trials ?? [])]);
    return { classes: items.map((trend) => className(trend)), names: state.trials.map((trial) => trial.name) };
  };
  const classesAt = h("ul", { class: "tabs", "aria-label": "Device classes" });
  body.before(classesAt);
  repeat(60, load, ({ classes }) => {
    const names = [...new Set(classes)];
    classesAt.replaceChildren(...(names.length > 1 ? names : []).map((name) => h("li", {}, h("a", { href: addressOf("space", problem, { class: name }), "aria-current": name === className(state.trend) ? "page" : null }, name))));
    draw();
  }, (error) => update(body, failure(error)), signal);
}
