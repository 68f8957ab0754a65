// A dataset: its first rows, what each column was taken for, what was understood, and lines that are wrong.
import { api, compute, el, errorBox, field, fill, menu, progressInto, say, short, wide } from "./core.js";
import { watchFile } from "./changed.js";

const root = document.getElementById("dataset");
const id = root.dataset.id;
const place = (name) => document.getElementById(name);
const SEVERAL = ["scores", "features", "ignore", "winner", "control", "tasks"];
let reading = null;
let running = null;

async function refresh(changed) {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  try {
    const about = await compute(`/api/data/${id}/understand`, changed ? { reading } : {}, progressInto(place("progress"), "Reading"), signal);
    reading = about.reading;
    watchFile(id, document.querySelector("h1").textContent, about.stamp, () => refresh(false));
    show(about);
    if (changed && !about.error) await api("PUT", `/api/data/${id}/reading`, { reading });
  } catch (error) {
    if (error.name !== "AbortError") fill(place("understood"), errorBox(error.message));
  }
}

function set(values) {
  reading = { ...reading, ...values };
  for (const [name, value] of Object.entries(reading)) if (value === "" || value === null || value?.length === 0) delete reading[name];
  refresh(true);
}

function show(about) {
  fill(place("understood"), about.error ? [offerVotes(about), wrong(about)] : understood(about), about.error ? null : offerRoles(about));
  showControls(about);
  fill(place("preview"), about.columns.length ? table(about) : about.lines.length ? el("pre", { tabindex: "0" }, about.lines.join("\n")) : el("p", {}, "No preview of this format."));
  place("preview-help").hidden = about.columns.length === 0;
}

function understood(about) {
  const can = about.uses;
  return [
    el("p", { class: "lead" }, "These are ", el("strong", {}, about.kind), `: ${about.shape}.`),
    about.notes.length ? el("ul", { class: "notes" }, about.notes.map((note) => el("li", {}, note))) : null,
    el("p", { class: "actions" },
      can.includes("board") ? el("a", { class: "button primary", href: `/board/${id}` }, "Open the board") : null,
      can.includes("methods") ? el("a", { class: "button", href: `/methods/${id}` }, "Compare methods") : null,
      can.includes("rankers") ? el("a", { class: "button primary", href: `/rankers/${id}` }, "Train rankers") : null),
    wide(el("table", { class: "facts" }, el("tbody", {}, about.facts.map(([name, value]) =>
      el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, typeof value === "number" ? short(value, 4) : String(value))))))),
    about.groups?.length ? el("div", { class: "warning" },
      el("p", {}, `No vote or ballot joins these ${about.groups.length} groups, so items of one cannot be compared with items of another:`),
      el("ol", {}, about.groups.map((group) => el("li", {}, group.slice(0, 12).join(", "), group.length > 12 ? ", …" : "")))) : null,
  ];
}

function wrong(about) {
  return [
    errorBox(about.error),
    about.wrong.length ? wide(el("table", { class: "ranking" },
      el("caption", {}, about.wrong.length >= 100 ? "The first 100 lines that cannot be used" : "Lines that cannot be used"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "line"), el("th", { scope: "col" }, "what is wrong"), el("th", { scope: "col" }, "way out"))),
      el("tbody", {}, about.wrong.map((one) => el("tr", {}, el("td", { class: "num" }, about.files.length > 1 ? `${one.file}: ${one.line}` : String(one.line)), el("td", {}, one.text), el("td", {}, one.way_out)))))) : null,
    about.can_skip ? el("p", {}, el("button", { type: "button", onclick: () => set({ on_error: "skip" }) }, "Leave these lines out"), " ",
      el("span", { class: "soft" }, "They are counted, and every board says so.")) : null,
  ];
}

const OUTCOMES = ["a", "b", "tie", "tied", "draw", "equal", "both", "left", "right", "first", "second", "1", "2", "0", "model_a", "model_b"];

/** Columns that hold the two sides of a vote and its result, by their first cells; null if none do. */
function sidesOf(columns) {
  const values = columns.map((column) => new Set(column.cells.filter(Boolean)));
  const numbers = values.map((some) => [...some].every((cell) => !Number.isNaN(Number(cell))));
  let best = null;
  for (let i = 0; i < columns.length; i++) for (let j = i + 1; j < columns.length; j++) {
    const common = [...values[i]].filter((cell) => values[j].has(cell)).length;
    const apart = columns[i].cells.every((cell, row) => cell !== columns[j].cells[row]);
    if (numbers[i] || numbers[j] || !apart || !common || (best && common <= best.common)) continue;
    const tells = (k) => columns[k].cells.every((cell, row) => !cell || OUTCOMES.includes(cell.toLowerCase()) || [columns[i].cells[row], columns[j].cells[row]].includes(cell));
    const says = columns.map((_, k) => k).filter((k) => k !== i && k !== j && values[k].size && (tells(k) || /win|won|result|outcome|better|choice|prefer/i.test(columns[k].name)));
    const winner = says.find((k) => /win|won|result|outcome|better|choice|prefer/i.test(columns[k].name)) ?? says[0];
    if (winner !== undefined) best = { common, a: columns[i].name, b: columns[j].name, winner: columns[winner].name };
  }
  return best;
}

/** Where columns have names of their own but look like votes: one click reads them so. */
function offerVotes(about) {
  const sides = reading.a || reading.b ? null : sidesOf(about.columns);
  if (!sides) return null;
  const { a, b, winner } = sides;
  return el("div", { class: "warning" }, el("p", {}, "These look like votes: ", el("strong", {}, a), " against ", el("strong", {}, b), ", and ", el("strong", {}, winner), " says who won."),
    el("p", {}, el("button", { type: "button", class: "primary", onclick: () => set({ format: "battles", a, b, winner }) }, "Read them as votes")));
}

const LIKELY = [ // role, names that suggest it, whether cells must be numbers, in words
  ["source", /^(judge|evaluator|grader)(_?(model|name|id))?$|^(annotator|rater)_?model$|^source$/i, false, "sources of one fit"],
  ["agent", /voter|rater|user|judge|annotator|assessor|respondent|participant|^who$/i, false, "who voted"],
  ["time", /date|time|^day$|^month$|^year$|created|when/i, false, "the time"],
  ["weight", /^(count|weight|n_votes|times)$/i, true, "a count"],
  ["control", /./, true, "a control"],
];

/** What a column that is not used could be, among the roles that its format has: the likeliest, and beside a source, whoever voted. */
function likelyRoles(about, column) {
  const roles = (about.menus?.[about.format] ?? []).map(([role]) => role);
  const given = column.cells.filter(Boolean);
  const number = given.length > 0 && given.every((cell) => !Number.isNaN(Number(cell)));
  const found = LIKELY.filter(([role, names, numbers]) => roles.includes(role) && names.test(column.name) && (!numbers || number) && (SEVERAL.includes(role) || !about.columns.some((one) => one.role === role)));
  return found.slice(0, found[0]?.[0] === "source" && found[1]?.[0] === "agent" ? 2 : 1);
}

/** Columns that are read by nobody, each with the role that it may have. */
function offerRoles(about) {
  const offers = about.columns.filter((column) => !column.role).flatMap((column) => likelyRoles(about, column).map((likely) => [column, likely]));
  if (!offers.length) return null;
  return el("section", { "aria-labelledby": "offers-title" }, el("h3", { id: "offers-title" }, "Columns that are not used"),
    el("ul", { class: "offers" }, offers.map(([column, [role, , , words]]) => el("li", {}, el("button", { type: "button", "data-control": `use ${column.name} ${role}`, onclick: () => assign(about, column, role) }, "Use ", el("strong", {}, column.name), ` as ${words}`)))));
}

function showControls(about) {
  const format = menu([["", "guessed"], ...about.formats], reading.format ?? "", { onchange: (event) => { reading = {}; set({ format: event.target.value }); } });
  const layout = about.format === "ballots" && about.columns.length
    ? field("Layout", menu([["", "guessed"], ...about.layouts], reading.layout ?? "", { onchange: (event) => set({ format: "ballots", layout: event.target.value }) })) : null;
  const skip = reading.on_error === "skip" ? el("button", { type: "button", onclick: () => set({ on_error: "" }) }, "Do not leave lines out") : null;
  const reset = Object.keys(reading).length ? el("button", { type: "button", onclick: () => { reading = {}; refresh(true); } }, "Guess again") : null;
  fill(place("format-controls"), field("Format", format), layout, skip, reset);
}

function table(about) {
  const roles = about.menus[about.format] ?? [];
  const head = about.columns.map((column) => {
    const known = roles.some(([role]) => role === column.role);
    const options = [["", known || !column.role ? "—" : column.role], ...roles];
    const choose = menu(options, known ? column.role : "", { "aria-label": `What ${column.name} is`, onchange: (event) => assign(about, column, event.target.value) });
    return el("th", { scope: "col", class: column.role && column.role !== "ignore" ? "used" : "" }, el("span", { class: "name" }, column.name), roles.length ? choose : null);
  });
  const rows = about.columns[0].cells.map((_, k) => el("tr", {}, about.columns.map((column) => el("td", {}, column.cells[k] ?? ""))));
  return el("table", { class: "preview" }, el("caption", {}, `The first ${rows.length} rows${about.files.length > 1 ? ` of ${about.files[0]}, one of ${about.files.length} files` : ""}`), el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
}

/** Give a column a role: it loses the one it had, and another column with that role loses it; sources are fitted on a page of their own. */
function assign(about, column, role) {
  if (role === "source") return void (location.href = `/sources?${new URLSearchParams({ data: id, column: column.name })}`);
  const values = { format: about.format };
  if (!SEVERAL.includes(role)) for (const one of about.columns) if (one.role === role) one.role = "";
  column.role = role; // at once, so that a second change before the answer builds on the first
  for (const one of about.columns) {
    const is = one.role;
    if (!is || !about.menus[about.format].some(([name]) => name === is)) continue;
    values[is] = SEVERAL.includes(is) && values[is] ? [].concat(values[is], one.name) : one.name;
  }
  reading = { ...(reading.layout ? { layout: reading.layout } : {}), ...(reading.on_error ? { on_error: reading.on_error } : {}) };
  set(values);
  say(`${column.name} is now ${role || "not used"}.`);
}

refresh(false);
