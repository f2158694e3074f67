// The dashboard server's JSON: single answers, whole lists, and answers that are asked for again and again.

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// The daemon is away, hangs, or is being stopped and cancels the calls that it has.
const AWAY = [499, 503, 504];
// It has too much to do: the next try may do.
const BUSY = 429;

// Whether the daemon can be reached, as the last answer had it. `since` is when it was lost.
const connection = { lost: false, since: null, reason: "" };
export const connectionEvents = new EventTarget();

function connected() {
  if (!connection.lost) return;
  connection.lost = false;
  connectionEvents.dispatchEvent(new CustomEvent("change", { detail: { ...connection } }));
}

function lost(reason) {
  if (connection.lost) return;
  Object.assign(connection, { lost: true, since: new Date(), reason });
  connectionEvents.dispatchEvent(new CustomEvent("change", { detail: { ...connection } }));
}

// {page_size: 5, states: ["A", "B"], filter: {problem: "x"}} -> "page_size=5&states=A&states=B&filter.problem=x".
// Empty values are left out, as protobuf leaves out defaults.
export function queryText(query, prefix = "") {
  const parts = [];
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === "" || value === null || value === undefined || value === false || value === 0) continue;
    if (Array.isArray(value)) {
      for (const each of value) parts.push(`${prefix}${name}=${encodeURIComponent(each)}`);
    } else if (typeof value === "object") {
      parts.push(queryText(value, `${prefix}${name}.`));
    } else {
      parts.push(`${prefix}${name}=${encodeURIComponent(value)}`);
    }
  }
  return parts.filter((part) => part !== "").join("&");
}

async function fetchText(resource, query, signal) {
  const text = queryText(query);
  let response;
  try {
    response = await fetch(`api/${resource}${text ? `?${text}` : ""}`, { cache: "no-cache", signal });
  } catch (error) {
    if (error.name !== "AbortError") lost("the dashboard's own server does not answer: is `attune dashboard` still running?");
    throw error;
  }
  const body = await response.text();
  if (response.ok) {
    if (resource !== "status") connected();
    return body;
  }
  let message = `${resource}: HTTP status ${response.status}`;
  try {
    message = JSON.parse(body).error.message || message;
  } catch {
    // Not JSON: the status is all that is known.
  }
  if (AWAY.includes(response.status)) lost(message);
  throw new ApiError(response.status, message);
}

export async function get(resource, query, signal) {
  return JSON.parse(await fetchText(resource, query, signal));
}

// All pages of a list, at most `pages` of them. {items, more}: `more` says that there was another page.
export async function list(resource, field, query, signal, pages = 10) {
  const items = [];
  let token = "";
  for (let page = 0; page < pages; ++page) {
    const answer = await get(resource, { page_size: 1000, ...query, page_token: token }, signal);
    items.push(...(answer[field] ?? []));
    token = answer.nextPageToken ?? "";
    if (!token) break;
  }
  return { items, more: token !== "" };
}

// Calls `load` now and then every `seconds`, until `signal` aborts; not while the page is hidden. While the daemon is
// away it tries every 2 s. `shown` gets what is new, `failed` what is an error of the request itself; the daemon's
// absence is the banner's.
export function repeat(seconds, load, shown, failed, signal) {
  let timer = null;
  let before = null;
  const again = () => {
    if (!signal.aborted) timer = setTimeout(run, 1000 * (connection.lost ? Math.min(2, seconds) : seconds));
  };
  const run = async () => {
    if (document.hidden) return again();
    try {
      const data = await load();
      const text = JSON.stringify(data);
      if (!signal.aborted && text !== before) {
        before = text;
        shown(data);
      }
    } catch (error) {
      if (signal.aborted) return undefined;
      if (!(error instanceof ApiError)) {
        // Without an answer fetch() throws a TypeError, and the banner says so.
        if (!connection.lost) throw error;
      } else if (![...AWAY, BUSY].includes(error.status)) {
        before = null;
        failed(error);
      }
    } finally {
      again();
    }
    return undefined;
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  run();
}

// The dashboard server says whether the daemon answers it.
export async function checkStatus(signal) {
  try {
    const status = await get("status", {}, signal);
    if (status.reachable) connected();
    else lost(status.error?.message || `${status.server} does not answer`);
    return status;
  } catch (error) {
    if (error instanceof ApiError) lost(error.message);
    return null;
  }
}
