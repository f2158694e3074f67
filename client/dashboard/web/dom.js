// Elements from data. Text becomes text nodes: what strangers wrote (titles, reasons, names) is never read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

// h("a", {href: "#/jobs", class: "name", onclick: f}, "text", element, [more]). Attributes that are null, undefined or
// false are left out; `on...` are listeners.
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  return append(element, children);
}

export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  return append(element, children);
}

// A <details> whose content is made when it is first opened. `key` identifies it from one update to the next.
export function fold(key, summary, build, open = false) {
  const body = h("div", { class: "fold-body" });
  const details = h("details", { "data-key": key }, h("summary", { "data-key": `${key}/summary` }, summary), body);
  let built = false;
  const fill = () => {
    if (built) return;
    built = true;
    append(body, [build()]);
  };
  details.addEventListener("toggle", () => details.open && fill());
  details.fill = fill;
  if (open) {
    fill();
    details.open = true;
  }
  return details;
}

// Replaces what is in `container`, and keeps what the reader has opened, where the focus is and what a scroll has reached.
export function update(container, ...children) {
  const states = new Map();
  for (const details of container.querySelectorAll("details[data-key]")) states.set(details.dataset.key, details.open);
  const focused = container.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  container.replaceChildren();
  append(container, children);
  // What a fold holds may have folds of its own.
  for (const [key, open] of states) {
    const details = find(container, key);
    if (!details || details.open === open) continue;
    if (open) details.fill?.();
    details.open = open;
  }
  if (focused !== null) find(container, focused)?.focus({ preventScroll: true });
}

function keyOf(element) {
  return element.dataset?.key ?? element.getAttribute("href");
}

function find(container, key) {
  for (const element of container.querySelectorAll("[data-key], a[href]")) if (keyOf(element) === key) return element;
  return null;
}
