// Search and sort for the tables of the page.  Without it the page is complete, in its original order.
"use strict";
const value = (cell) => {
  const text = cell.textContent.replace(/[\u2007\u2008,%]/g, "").replace("\u2212", "-").trim();
  const number = parseFloat(text);
  return Number.isNaN(number) ? -Infinity : number;
};
const compare = new Intl.Collator(undefined, { numeric: true }).compare;
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], rows = Array.from(body.rows), heads = Array.from(table.tHead.rows[0].cells);
  if (rows.length < 2) continue;
  const order = (head, at) => {
    const before = head.getAttribute("aria-sort");
    const up = before ? before === "descending" : head.dataset.sort !== "down";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const words = head.dataset.sort === "text", sign = up ? 1 : -1;
    const keyed = rows.map((row, k) => [words ? row.cells[at].textContent : value(row.cells[at]), k, row]);
    keyed.sort((a, b) => sign * (words ? compare(a[0], b[0]) : (a[0] > b[0]) - (a[0] < b[0])) || a[1] - b[1]);
    table.classList.toggle("resorted", at !== 0 || !up);
    const all = document.createDocumentFragment();
    for (const one of keyed) all.append(one[2]);
    body.append(all);
  };
  heads.forEach((head, at) => {
    if (!head.dataset.sort) return;
    const button = document.createElement("button");
    button.type = "button";
    const plain = document.createElement("span");  // on paper, where heads are repeated without their buttons
    plain.className = "plain";
    plain.textContent = head.textContent;
    button.append(...head.childNodes);
    button.addEventListener("click", () => order(head, at));
    head.append(button, plain);
  });
  if (rows.length < 8) continue;
  const bar = document.createElement("p"), label = document.createElement("label");
  const box = document.createElement("input"), told = document.createElement("span");
  bar.className = "search";
  box.type = "search";
  told.className = "soft";
  told.setAttribute("role", "status");
  label.append("Search ", box);
  bar.append(label, " ", told);
  const names = rows.map((row) => row.querySelector("th").textContent.toLowerCase());
  box.addEventListener("input", () => {
    const wanted = box.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, k) => { row.hidden = !names[k].includes(wanted); shown += !row.hidden; });
    table.classList.toggle("searched", wanted !== "");
    told.textContent = wanted ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
  });
  (table.closest(".wide") || table).before(bar);
}
const named = (hash) => document.getElementById(decodeURIComponent(hash.slice(1)));
for (const list of document.querySelectorAll(".switch")) {
  const links = Array.from(list.querySelectorAll("a")), parts = links.map((link) => named(link.hash));
  const group = document.createElement("div"), buttons = [];
  group.className = "switch";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", list.dataset.label);
  const show = (at) => parts.forEach((part, k) => {
    part.hidden = k !== at;
    buttons[k].setAttribute("aria-pressed", String(k === at));
  });
  links.forEach((link, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...link.childNodes);
    button.addEventListener("click", () => show(at));
    buttons.push(button);
    group.append(button);
  });
  list.replaceWith(group);
  const follow = () => {
    const target = named(location.hash), at = parts.findIndex((part) => part.contains(target));
    if (at >= 0) { show(at); target.scrollIntoView(); }
    return at >= 0;
  };
  if (!follow()) show(0);
  addEventListener("hashchange", follow);
}
