// Addresses behind '#': "#/problem/b2.h8.q512.d64.f16?class=l4" is the page "problem", its subject and its query.
import { h } from "./dom.js";

// Pure. "" is the landing page.
export function parseAddress(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const slash = path.indexOf("/");
  const page = slash < 0 ? path : path.slice(0, slash);
  let subject = slash < 0 ? "" : path.slice(slash + 1);
  try {
    subject = decodeURIComponent(subject);
  } catch {
    // Not encoded: as it is.
  }
  return { page: page || "health", subject, query: Object.fromEntries(new URLSearchParams(query)) };
}

// Pure. Empty entries of the query are left out.
export function addressOf(page, subject = "", query = {}) {
  const entries = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const text = new URLSearchParams(entries).toString();
  const path = subject ? `/${encodeURIComponent(subject).replaceAll("%2F", "/")}` : "";
  return `#/${page}${path}${text ? `?${text}` : ""}`;
}

// Changes the query of the address, without a new page or an entry in the history.
export function keepQuery(query) {
  const { page, subject } = parseAddress(location.hash);
  history.replaceState(null, "", addressOf(page, subject, query));
}

// pages: {name, title, module}; a module exports show({root, subject, query, signal}), which fills root and may go on
// until the signal aborts.
export function startRouter(pages, main, changed) {
  let current = null;

  const go = async (event) => {
    current?.abort();
    const leaving = new AbortController();
    current = leaving;
    const { page: name, subject, query } = parseAddress(location.hash);
    const page = pages.find((each) => each.name === name);
    changed(name);
    document.title = `${subject || page?.title || "not found"} · attune`;
    const root = h("div", { class: `page page-${name}` });
    main.replaceChildren(root);
    // Somebody who follows a link is at the start of the new page, with the keyboard and with the eyes.
    if (event) {
      main.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
    if (!page) {
      root.append(h("h1", {}, "No such page"), h("p", {}, "There is ", h("a", { href: "#/health" }, "Health"), "."));
      return;
    }
    const module = await import(page.module);
    if (!leaving.signal.aborted) module.show({ root, subject, query, signal: leaving.signal });
  };

  window.addEventListener("hashchange", go);
  go(null);
}
