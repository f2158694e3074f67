// The dashboard: one page at a time, chosen by the address behind '#'.
import { checkStatus, connectionEvents } from "./api.js";
import { h } from "./dom.js";
import { moment } from "./format.js";
import { startRouter } from "./router.js";

const PAGES = [
  { name: "health", title: "Health", module: "./page_health.js" },
  { name: "jobs", title: "Jobs", module: "./page_jobs.js" },
  { name: "compare", title: "Compare", module: "./page_compare.js" },
  { name: "roofline", title: "Roofline", module: "./page_roofline.js" },
  { name: "devices", title: "Devices", module: "./page_devices.js" },
  { name: "problem", title: "Problem", module: "./page_problem.js", under: "health" },
  { name: "space", title: "Space", module: "./page_space.js", under: "health" },
  { name: "job", title: "Job", module: "./page_job.js", under: "jobs" },
];

const byId = (id) => document.getElementById(id);

function showPages(current) {
  const of = PAGES.find((page) => page.name === current);
  byId("pages").replaceChildren(
    ...PAGES.filter((page) => !page.under).map((page) =>
      h("li", {}, h("a", { href: `#/${page.name}`, "aria-current": page.name === (of?.under ?? current) ? "page" : null }, page.title)),
    ),
  );
}

function showTheme() {
  const other = window.attuneTheme.current() === "dark" ? "light" : "dark";
  byId("theme").replaceChildren(h("span", { "aria-hidden": "true" }, other === "dark" ? "☾" : "☀"), ` ${other}`);
  byId("theme").setAttribute("aria-label", `Switch to the ${other} theme`);
}

function showConnection({ detail }) {
  const banner = byId("banner");
  if (!detail.lost) {
    banner.replaceChildren();
    return;
  }
  banner.replaceChildren(
    h("strong", {}, "The daemon is away"),
    ` since ${moment(detail.since)}: ${detail.reason}. What is shown is from before; this page goes on by itself once the daemon is back.`,
  );
}

function showStatus(status) {
  if (!status?.server) return;
  const { principal, role = "" } = status.caller ?? {};
  const caller = principal ? `, as ${principal}${role ? ` (${role})` : ""}` : "";
  const version = status.serverVersion ? ` (${status.serverVersion})` : "";
  byId("server").replaceChildren(h("code", {}, status.server), `${version}${caller}`);
}

async function watchStatus() {
  if (!document.hidden) showStatus(await checkStatus());
  setTimeout(watchStatus, byId("banner").hasChildNodes() ? 2000 : 5000);
}

byId("theme").addEventListener("click", () => window.attuneTheme.toggle());
document.addEventListener("themechange", showTheme);
document.querySelector(".skip").addEventListener("click", (event) => {
  // '#main' would be read as a page's address.
  event.preventDefault();
  byId("main").focus();
});
connectionEvents.addEventListener("change", showConnection);
showTheme();
watchStatus();
startRouter(PAGES, byId("main"), showPages);
