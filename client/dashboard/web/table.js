// Tables that sort by a click or a key on a column's head, and turn into one card a row where the window is narrow.
import { h } from "./dom.js";

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") {
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return a - b;
  }
  return String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true });
}

// columns: {label, cell(row) -> text or nodes, sort(row) -> number or text, number: true, class, optional: true}; an optional
// one is left out where all its cells are empty texts. `caption` is for those
// who do not see what stands above it. `after(row)` may give a row's second line, over all columns. Rows keep their order
// until a head is used; `order` ({column, down}) is kept in the object given, from one table to the next.
export function table({ caption, columns: all, rows, after, key = caption, order = {}, rowClass }) {
  const columns = all.filter((column) => !column.optional || rows.some((row) => column.cell(row) !== ""));
  const body = h("tbody");
  const heads = columns.map((column, index) => head(column, index));

  function head(column, index) {
    if (!column.sort) return h("th", { scope: "col", class: classes(column) }, column.label);
    const button = h(
      "button",
      { type: "button", "data-key": `${key}/sort/${column.label}`, onclick: () => sortBy(index) },
      column.label,
      h("span", { class: "arrow", "aria-hidden": "true" }),
    );
    return h("th", { scope: "col", class: classes(column) }, button);
  }

  function sortBy(index) {
    order.down = order.column === index ? !order.down : Boolean(columns[index].number);
    order.column = index;
    fill();
  }

  function fill() {
    const sorted = [...rows];
    if (order.column !== undefined) {
      const of = columns[order.column].sort;
      sorted.sort((a, b) => (order.down ? -1 : 1) * compare(of(a), of(b)));
    }
    heads.forEach((element, index) => {
      if (!columns[index].sort) return;
      const state = order.column === index ? (order.down ? "descending" : "ascending") : "none";
      element.setAttribute("aria-sort", state);
    });
    body.replaceChildren(...sorted.flatMap(lines));
  }

  function lines(row) {
    const cells = columns.map((column, index) =>
      h(index === 0 ? "th" : "td", { scope: index === 0 ? "row" : null, class: classes(column), "data-label": column.label },
        h("div", { class: "cell" }, column.cell(row))),
    );
    const first = h("tr", { class: rowClass?.(row) }, cells);
    const more = after?.(row);
    return more ? [first, h("tr", { class: "after" }, h("td", { colspan: columns.length }, more))] : [first];
  }

  fill();
  return h("div", { class: "scroll" }, h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, heads)), body));
}

function classes(column) {
  return [column.number && "number", column.class].filter(Boolean).join(" ") || null;
}
