// The cards, what they do now and how they did last, the backends, the kernel families, and what was asked for in vain.
import { get, list, repeat } from "./api.js";
import { commandLine, tuneCommand } from "./commands.js";
import { fold, h, update } from "./dom.js";
import { ago, bytes, count, durationText, enumWord, policyWord, seconds, short, si, us } from "./format.js";
import { badge, empty, facts, failure, jobLink, loading, problemLink, section, when } from "./parts.js";
import { progressBar } from "./job_parts.js";
import { table } from "./table.js";

// NVML's clock event reasons (nvml.h, nvmlClocksEventReason*).
const THROTTLING = [
  [0x1, "idle"], [0x2, "application clocks"], [0x4, "power cap"], [0x8, "hardware slow-down"], [0x10, "sync boost"],
  [0x20, "thermal, by software"], [0x40, "thermal, by hardware"], [0x80, "power brake"], [0x100, "display clocks"],
];

// Pure. "power cap, thermal, by software"; "none". Protobuf's JSON has 64-bit integers as text.
export function throttleWords(mask) {
  const bits = BigInt(mask ?? 0);
  const words = THROTTLING.filter(([bit]) => (bits & BigInt(bit)) !== 0n).map(([, word]) => word);
  return words.length ? words.join(", ") : "none";
}

function last(retiming) {
  if (!retiming) return h("p", { class: "muted" }, "Nothing was timed again on it yet.");
  const { timing = {} } = retiming;
  return facts([
    ["last timed", [when(retiming.finishTime), ` (${ago(retiming.finishTime)})`]],
    ["then", [problemLink(retiming.problemText, retiming.deviceId, retiming.policy), `, ${us(timing.medianUs)} us`]],
    ["SM clock", timing.smClockMhz && `${count(timing.smClockMhz)} MHz`],
    ["power", timing.powerW && `${Math.round(timing.powerW)} W`],
    ["temperature", timing.temperatureC && `${timing.temperatureC} °C`],
    ["throttled by", timing.smClockMhz ? throttleWords(timing.throttleReasons) : null],
    ["another process on it", timing.contended ? "yes" : null],
  ]);
}

// Pure. Whether a job is on a card of this server, which in a fleet is called by its host's name, too.
export function runsOn(job, device, hosts) {
  const card = job.progress?.deviceId;
  if (card === device.id) return true;
  const same = (other) => other.id === device.id && other.uuid === device.uuid && other.fingerprint === device.fingerprint;
  return hosts.some((host) => card === `${host.name}/devices/${device.id}` && (host.devices ?? []).some(same));
}

// Pure. "cuda:0, cuda:1 (h200); opencl:0 (pthread)"; "none: a gateway".
export function cardWords(devices) {
  const classes = new Map();
  for (const device of devices ?? []) classes.set(device.classAlias, [...(classes.get(device.classAlias) ?? []), device.id]);
  return [...classes].map(([alias, ids]) => `${ids.join(", ")} (${alias})`).join("; ") || "none: a gateway";
}

const hostState = (host) => `${enumWord(host.state, "STATE_").toUpperCase()}${host.draining ? ", draining" : ""}`;

function hosts(all) {
  return table({
    caption: "Hosts that share the store",
    rows: all,
    columns: [
      { label: "Host", class: "wide", cell: (row) => h("code", {}, row.name), sort: (row) => row.name },
      { label: "State", cell: (row) => h("span", { class: `badge ${row.state !== "STATE_LIVE" ? "bad" : row.draining ? "quiet" : "good"}` }, hostState(row)), sort: (row) => row.state },
      { label: "Heard", cell: (row) => `${durationText(seconds(row.heartbeatAge))} ago`, sort: (row) => seconds(row.heartbeatAge) },
      { label: "Version", cell: (row) => row.version ?? "" },
      { label: "Cards", class: "text", cell: (row) => cardWords(row.devices) },
      { label: "Works on", class: "text", cell: (row) => h("ul", { class: "plain" }, (row.operations ?? []).map((job) => h("li", {}, jobLink(job.name, job.title || job.name)))) },
    ],
  });
}

function card(device, retiming, jobs, all) {
  const running = jobs.filter((job) => runsOn(job, device, all));
  return h(
    "article",
    { class: "card" },
    h("h3", {}, device.id, h("span", { class: "muted" }, " · "), device.model, " ", h("span", { class: "badge info" }, device.classAlias || short(device.fingerprint))),
    running.length
      ? h("ul", { class: "plain" }, running.map((job) => h("li", {}, badge("RUNNING"), " ", jobLink(job.name, job.title || job.name), progressBar(job))))
      : h("p", {}, "No job runs on it."),
    last(retiming),
    fold(`limits/${device.id}`, "Limits and identity", () =>
      facts([
        ["UUID", device.uuid],
        ["class", short(device.fingerprint)],
        ["driver", device.driver],
        ["target", device.target],
        ["SMs", count(device.computeUnits)],
        ["memory", bytes(device.memoryBytes)],
        ["bandwidth, theoretical", Number(device.memoryBandwidthGbs) ? si(Number(device.memoryBandwidthGbs) * 1e9, "B/s") : "unknown"],
        ["L2", bytes(device.l2Bytes)],
        ["shared memory a CTA", bytes(device.sharedBytesPerBlock)],
        ["shared memory an SM", bytes(device.sharedBytesPerSm)],
        ["registers an SM", count(device.registersPerSm)],
        ["warps an SM", count(device.maxWarpsPerSm)],
        ["SM clock, most", Number(device.smClockMhz) ? `${count(device.smClockMhz)} MHz` : null],
      ])),
  );
}

function backends(all) {
  return table({
    caption: "Backends",
    rows: all,
    columns: [
      { label: "Backend", cell: (row) => enumWord(row.backend, "BACKEND_") },
      { label: "In use", cell: (row) => (row.available ? "yes" : "no") },
      { label: "Compiler", class: "text", cell: (row) => row.compiler ?? "" },
      { label: "Why not", class: "text", cell: (row) => row.reason ?? "" },
    ],
  });
}

function familyDetails(family) {
  return fold(`family/${family.name}`, "parameters and constraints", () => [
    h("ul", {}, (family.parameters ?? []).map((parameter) => h("li", {}, h("code", {}, parameter.name), ` ${(parameter.values ?? []).join(", ")}${parameter.launchTime ? " (launch time)" : ""}: ${parameter.description ?? ""}`))),
    h("ul", {}, [...(family.constraints ?? []), ...(family.problemLimits ?? [])].map(({ expression, reason, advice }) => h("li", {}, h("code", {}, expression), `${advice ? " (advice)" : ""}: ${reason ?? ""}`))),
  ]);
}

function families(all) {
  return table({
    caption: "Kernel families",
    rows: all,
    columns: [
      { label: "Family", cell: (row) => h("code", {}, row.name), sort: (row) => row.name },
      { label: "Backend", cell: (row) => enumWord(row.backend, "BACKEND_"), sort: (row) => row.backend },
      { label: "Source", cell: (row) => h("code", { title: row.sourceHash }, short(row.sourceHash)) },
      { label: "Description", class: "text", cell: (row) => row.description ?? "" },
      { label: "Details", class: "text", cell: familyDetails },
    ],
  });
}

function misses(all) {
  if (all.length === 0) return h("p", { class: "muted" }, "Nobody asked for a problem that is not tuned, since the server was started.");
  return table({
    caption: "Problems that were asked for and nobody has tuned",
    rows: all,
    columns: [
      { label: "Problem", class: "wide", cell: (row) => h("span", { class: "problem" }, row.problemText), sort: (row) => row.problemText },
      { label: "Device", cell: (row) => `${row.deviceId ?? ""} · ${policyWord(row.policy)}` },
      { label: "Asked", number: true, cell: (row) => count(row.count), sort: (row) => Number(row.count ?? 0) },
      { label: "Answered", class: "text", cell: (row) => [enumWord(row.provenance, "PROVENANCE_").toUpperCase() || "NOT FOUND", row.provenanceDetail ? `: ${row.provenanceDetail}` : ""] },
      { label: "Command", class: "text", cell: (row) => commandLine(tuneCommand(row.problemText, row.deviceId, row.policy), "", `${row.problemText} ${row.deviceId}`) },
    ],
  });
}

async function load(signal) {
  const { devices: here = [], backends: reasons = [], serverVersion } = await get("devices", {}, signal);
  const [shared, operations, kernelFamilies, missed, ...lasts] = await Promise.all([
    get("hosts", {}, signal),
    get("operations", { active_only: true, view: "OPERATION_VIEW_BASIC", page_size: 200 }, signal),
    get("families", {}, signal),
    list("misses", "misses", { page_size: 100 }, signal, 1),
    ...here.map((device) => get("retimings", { device_id: device.id, page_size: 1 }, signal)),
  ]);
  const active = operations.operations ?? [];
  // A sweep works through operations of its own.
  const sweeps = active.filter((operation) => !operation.problem && operation.state === "STATE_RUNNING");
  const problems = await Promise.all(sweeps.map(({ name }) => get("operations", { parent: name, active_only: true, view: "OPERATION_VIEW_BASIC", page_size: 50 }, signal)));
  const jobs = [...active, ...problems.flatMap((page) => page.operations ?? [])].filter((operation) => operation.state === "STATE_RUNNING");
  return { hosts: shared.hosts ?? [], devices: here, backends: reasons, serverVersion, jobs, families: kernelFamilies.families ?? [], misses: missed.items, lasts: lasts.map((answer) => answer.retimings?.[0] ?? null) };
}

export function show({ root, signal }) {
  const body = h("div", {}, loading());
  root.append(h("h1", {}, "Devices"), body);
  repeat(
    5,
    () => load(signal),
    (data) =>
      update(
        body,
        data.devices.length
          ? h("div", { class: "cards" }, data.devices.map((device, index) => card(device, data.lasts[index], data.jobs, data.hosts)))
          : data.hosts.length > 1
            ? empty("The server has no device: it answers from what is stored, and the hosts that share its store tune.", commandLine("attune hosts", "the same in a terminal"))
            : empty("The server has no device: it answers from what is stored and can tune nothing. Its host's backends say why.", commandLine("attune devices", "the same in a terminal")),
        data.hosts.length > 1 && section("hosts", "Hosts", hosts(data.hosts)),
        section("backends", "Backends", backends(data.backends)),
        section("families", "Kernel families", families(data.families)),
        section("misses", "Asked for and never tuned", misses(data.misses)),
        h("p", { class: "muted" }, `Server ${data.serverVersion ?? ""}`),
      ),
    (error) => update(body, failure(error)),
    signal,
  );
}
