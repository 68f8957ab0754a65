// The board: the address is the question; every change of a control changes the address and asks again.
import { api, compute, copyable, el, errorBox, field, filesOf, fill, fillControls, lead, menu, percent, progressInto, rounded, say, short, wide, withKnownNames } from "./core.js";
import { tellChanged, watchFile } from "./changed.js";
import * as charts from "./charts.js";

const root = document.getElementById("board");
const id = root.dataset.id;
const place = (name) => document.getElementById(name);
const PER_PAGE = 100;
const OF_TIME = ["drift", "step"]; // controls of votes that say when they were given
const LOOK = ["view", "sort", "down", "search", "tier", "page", "a", "b"];
let catalog = [];
let found = null;
let running = null;

const query = () => new URLSearchParams(location.search);
const roomy = window.matchMedia("(min-width: 64rem)");
const known = (text) => withKnownNames(text, filesOf(root));

/** The part of the address that the numbers depend on. */
function question() {
  const values = query();
  for (const name of LOOK) values.delete(name);
  return values.toString();
}

/** Change the address; empty values leave it. */
function go(changes, { ask = false, replace = false } = {}) {
  const values = query();
  for (const [name, value] of Object.entries(changes)) {
    values.delete(name);
    for (const one of [].concat(value)) if (one !== "" && one !== null && one !== undefined) values.append(name, one);
  }
  const text = values.toString();
  history[replace ? "replaceState" : "pushState"](null, "", text ? `?${text}` : location.pathname);
  return ask ? recompute() : show();
}

async function recompute() {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  place("board").classList.add("stale");
  try {
    found = await compute(`/api/board/${id}/board?${question()}`, {}, progressInto(place("progress"), "Computing"), signal);
    watchFile(id, root.dataset.name, found.stamp, recompute);
    showControls();
    fill(place("same"), found.command ? copyable("Command", known(found.command)) : el("p", { class: "soft" }, "The command line cannot ask this; these lines of Python can."), copyable("Python", known(found.python)));
    await show();
  } catch (error) {
    if (error.name === "AbortError") return signal.aborted ? undefined : say("Cancelled.");
    showControls();
    fill(place("lead"));
    fill(place("notes"), errorBox(error.message));
    fill(place("view"));
  } finally {
    if (!signal.aborted) place("board").classList.remove("stale");
  }
}

/** What was computed beside the board; if the file has changed in between, the page says so. */
function ofThisBoard(about) {
  if (about.stamp !== found.stamp) tellChanged(root.dataset.name, recompute);
  return about;
}

// Controls

function showControls() {
  const values = query();
  const name = values.get("method") || found?.method || "bradley-terry";
  const method = catalog.find((one) => one.name === name);
  const group = (kind, label) => el("optgroup", { label }, catalog.filter((one) => one.kind === kind).map((one) => el("option", { value: one.name }, one.name)));
  const choose = el("select", { onchange: (event) => {
    const gone = Object.fromEntries([...query().keys()].filter((key) => key.startsWith("p.")).map((key) => [key, ""]));
    go({ ...gone, method: event.target.value }, { ask: true });
  } }, found?.kind === "scores" ? group("score", "of score tables") : null, group("model", "models"), group("rule", "rules"));
  choose.value = name;
  choose.dataset.control = "method";
  const controls = (method?.controls ?? []).filter((control) => found?.time?.known || !OF_TIME.includes(control.name) || values.has(`p.${control.name}`)).map((control) => parameter(control, values.get(`p.${control.name}`)));
  fillControls(place("controls"), field("Method", choose), controls, number("bootstrap", "Bootstrap rounds", values.get("bootstrap") ?? 0, { min: 0, max: 10000, step: 50 }),
    number("level", "Level", values.get("level") ?? 0.95, { min: 0.5, max: 0.999, step: 0.01 }),
    found?.slices?.length > 1 ? field("Slices by", menu([["", "no column"], ...found.slices], values.get("by") ?? "", { "data-control": "by", onchange: (event) => go({ by: event.target.value, instance: "", agent: "" }, { ask: true }) })) : null,
    found?.instances?.length ? field(values.get("by") ? "Slice" : "Contest", menu(found.instances.map((one) => one.name), values.get("instance") || found.instances[0].name, { onchange: (event) => go({ instance: event.target.value }, { ask: true }) })) : null,
    found?.agents?.length ? slices(values.getAll("agent")) : null);
  fill(place("method-about"), method ? method.about : "");
  const level = values.get("level") ?? 0.95;
  fill(place("asked"), `By ${name}${values.get("bootstrap") > 0 ? `, ${values.get("bootstrap")} bootstrap rounds` : ""}, at the level ${level}.`);
}

function parameter(control, given) {
  const key = `p.${control.name}`;
  const label = control.name.replaceAll("_", " ");
  const change = (value) => go({ [key]: String(value) === String(control.default ?? "none") ? "" : value }, { ask: true });
  let input;
  if (control.input === "select") input = menu(control.choices, given ?? control.default, { onchange: (event) => change(event.target.value) });
  else if (control.input === "checkbox") input = el("input", { type: "checkbox", checked: (given ?? String(control.default)) === "true", onchange: (event) => change(event.target.checked) });
  else input = el("input", { type: control.input === "number" ? "number" : "text", step: "any", size: 8, value: given ?? (control.default === null ? "none" : control.default), onchange: (event) => change(event.target.value) });
  input.dataset.control = key;
  return field(label, input);
}

function number(name, label, value, limits) {
  return field(label, el("input", { type: "number", value, ...limits, "data-control": name, onchange: (event) => go({ [name]: event.target.value }, { ask: true }) }));
}

function slices(chosen) {
  const input = el("select", { multiple: true, size: 4, "data-control": "agent", onchange: (event) => go({ agent: [...event.target.selectedOptions].map((option) => option.value) }, { ask: true }) },
    found.agents.map((name) => el("option", { value: name }, name)));
  for (const option of input.options) option.selected = chosen.includes(option.value);
  return field("Voters (none chosen: all)", input);
}

// Views

const VIEWS = {
  ranking: { words: "Ranking", show: ranking },
  intervals: { words: "Chart", show: intervals },
  wins: { words: "Who beats whom", show: wins, when: () => found.has_wins },
  ranks: { words: "Rank probabilities", show: ranks, when: () => found.has_errors },
  fragility: { words: "How few votes decide it", show: fragility, when: () => found.columns.item.length > 1 },
  history: { words: "Over time", show: over_time, when: () => found.time },
  voters: { words: "Voters", show: voters, when: () => found.voters.length },
  controls: { words: "Controls", show: controls, when: () => found.beside.controls },
  raters: { words: "Raters", show: raters, when: () => found.beside.agents },
  contests: { words: "Contests", show: contests, when: () => found.instances.length },
  export: { words: "Export", show: exports },
};

async function show() {
  if (!found) return;
  const view = VIEWS[query().get("view")] ? query().get("view") : "ranking";
  const there = Object.entries(VIEWS).filter(([, one]) => !one.when || one.when());
  fill(place("tabs"), there.map(([name, one]) => el("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-selected": name === view ? "true" : "false", "aria-controls": "view",
    tabindex: name === view ? "0" : "-1", onclick: () => go({ view: name === "ranking" ? "" : name, page: "" }), onkeydown: alongTabs }, one.words)));
  place("view").setAttribute("aria-labelledby", `tab-${view}`);
  fill(place("lead"), lead(found));
  fill(place("notes"), found.notes.length ? el("details", { open: place("notes").querySelector("details")?.open ?? (found.notes.length < 4 && roomy.matches) }, el("summary", {}, found.notes.length === 1 ? "1 note" : `${found.notes.length} notes`), el("ul", { class: "notes" }, found.notes.map((note) => el("li", {}, note)))) : null);
  try {
    await VIEWS[view].show(place("view"));
  } catch (error) {
    if (error.name !== "AbortError") fill(place("view"), errorBox(error.message));
  }
  await pair();
}

function alongTabs(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...place("tabs").children];
  const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
  const name = next.id;
  next.click();
  document.getElementById(name)?.focus();
}

const SORTS = { rank: "rank", item: "item", score: "score", stderr: "± error", support: "votes" };

function rows() {
  const c = found.columns;
  return c.item.map((item, k) => ({ item, score: c.score[k], stderr: c.stderr[k], rank: c.rank[k], rank_low: c.rank_low[k], rank_high: c.rank_high[k], tier: c.tier[k], support: c.support[k], low: c.low?.[k] ?? null, high: c.high?.[k] ?? null }));
}

/** The rows that the address asks for: found, filtered and sorted. */
function chosenRows() {
  const values = query();
  const text = (values.get("search") ?? "").toLowerCase();
  const tier = values.get("tier");
  let some = rows();
  if (text) some = some.filter((row) => row.item.toLowerCase().includes(text));
  if (tier) some = some.filter((row) => String(row.tier) === tier);
  const by = SORTS[values.get("sort")] ? values.get("sort") : "rank";
  const way = values.get("down") ? -1 : 1;
  if (by !== "rank" || way < 0) some.sort((x, y) => way * (by === "item" ? x.item.localeCompare(y.item) : (x[by] ?? Infinity) - (y[by] ?? Infinity)));
  return some;
}

function ranking(node) {
  const values = query();
  const some = chosenRows();
  const last = Math.max(1, Math.ceil(some.length / PER_PAGE));
  const at = Math.min(last, Math.max(1, Number(values.get("page")) || 1));
  const tiers = [...new Set(found.columns.tier.filter((tier) => tier !== null))];
  const search = el("input", { type: "search", value: values.get("search") ?? "", "data-control": "search", oninput: (event) => {
    go({ search: event.target.value, page: "" }, { replace: true });
  } });
  const bars = scale(some.slice(PER_PAGE * (at - 1), PER_PAGE * at));
  const body = [];
  let before = null;
  for (const row of some.slice(PER_PAGE * (at - 1), PER_PAGE * at)) {
    if (row.tier !== null && row.tier !== before && !values.get("sort") && !values.get("search")) body.push(el("tr", { class: "tier" }, el("th", { colspan: "6", scope: "rowgroup" }, `tier ${row.tier}`)));
    before = row.tier;
    body.push(line(row, bars, values));
  }
  fill(node, el("div", { class: "controls" }, field("Search", search),
    tiers.length > 1 ? field("Tier", menu([["", "all"], ...tiers], values.get("tier") ?? "", { onchange: (event) => go({ tier: event.target.value, page: "" }) })) : null,
    el("p", { class: "soft", "aria-live": "polite" }, `${short(some.length)} of ${short(found.columns.item.length)} items`)),
  el("p", { class: "soft" }, "Choose two items to see why one is above the other."),
  wide(el("table", { class: "ranking board" }, el("thead", {}, el("tr", {}, head("rank", values), head("item", values), head("score", values), el("th", { scope: "col", class: "plot" }, found.has_errors ? "interval" : ""), head("stderr", values), head("support", values))), el("tbody", {}, body))),
  last > 1 ? pager(at, last) : null);
}

function head(name, values) {
  const by = values.get("sort") ?? "rank";
  const is = by === name;
  const down = is && values.get("down");
  const next = is ? (down ? "" : "1") : "";
  return el("th", { scope: "col", "aria-sort": is ? (down ? "descending" : "ascending") : "none" },
    el("button", { type: "button", class: "sort", "data-control": `sort ${name}`, onclick: () => go({ sort: name === "rank" ? "" : name, down: next, page: "" }) }, SORTS[name], is ? (down ? " ▾" : " ▴") : ""));
}

function scale(some) {
  const ends = some.flatMap((row) => [row.low ?? row.score, row.high ?? row.score]);
  const low = Math.min(...ends);
  const width = Math.max(...ends) - low || 1;
  return (value) => (100 * (value - low)) / width;
}

function line(row, at, values) {
  const chosen = [values.get("a"), values.get("b")].includes(row.item);
  const span = row.rank_low !== null && row.rank_low < row.rank_high ? el("span", { class: "soft" }, ` ${row.rank_low}–${row.rank_high}`) : null;
  const known = row.low !== null;
  const svg = el("svg", { viewBox: "-2 0 104 14", preserveAspectRatio: "none", role: "img", "aria-label": known ? `from ${short(row.low)} to ${short(row.high)}` : `score ${short(row.score)}` },
    el("line", { x1: 0, x2: 100, y1: 7, y2: 7, class: "axis" }),
    known ? el("rect", { class: "bar", x: at(row.low).toFixed(2), width: Math.max(0.2, at(row.high) - at(row.low)).toFixed(2), y: 5, height: 4 }) : null,
    el("rect", { class: "dot", x: (at(row.score) - 0.5).toFixed(2), width: 1, y: 2, height: 10 }));
  return el("tr", { class: chosen ? "chosen" : null }, el("td", { class: "rank" }, String(row.rank), span),
    el("th", { scope: "row" }, el("button", { type: "button", class: "item", "aria-pressed": chosen ? "true" : "false", onclick: () => choose(row.item) }, row.item)),
    el("td", { class: "num" }, rounded(row.score, row.stderr)), el("td", { class: "plot" }, svg), el("td", { class: "num" }, row.stderr === null ? "" : `± ${rounded(row.stderr, row.stderr)}`), el("td", { class: "num" }, row.support === null ? "" : short(row.support)));
}

function pager(at, last) {
  const to = (page) => () => go({ page: page === 1 ? "" : page });
  return el("nav", { class: "pager", "aria-label": "Pages" }, el("button", { type: "button", disabled: at === 1, onclick: to(at - 1) }, "Previous"), el("span", {}, `page ${at} of ${last}`), el("button", { type: "button", disabled: at === last, onclick: to(at + 1) }, "Next"));
}

function choose(item) {
  const values = query();
  const [a, b] = [values.get("a"), values.get("b")];
  if (a === item) go({ a: b, b: "" });
  else if (b === item) go({ b: "" });
  else if (!a) go({ a: item });
  else go({ b: item });
}

async function pair() {
  const node = place("pair");
  const [first, second] = [query().get("a"), query().get("b")];
  node.hidden = !first;
  if (!first) return;
  const close = el("button", { type: "button", onclick: async () => {
    await go({ a: "", b: "" });
    [...place("view").querySelectorAll("button.item")].find((one) => one.textContent === first)?.focus();
  } }, "Close");
  if (!second) return void fill(node, el("h2", { id: "pair-title" }, first), el("p", {}, "Choose another item to compare it with."), close);
  try {
    const about = ofThisBoard(await compute(`/api/board/${id}/pair?${question()}`, { first, second }));
    fill(node, el("div", { class: "actions spread" }, el("h2", { id: "pair-title" }, `${about.above} and ${about.below}`), close), el("div", { class: "pair" }, el("p", {}, about.words),
      el("table", { class: "facts" }, el("tbody", {},
        fact("ranks", `${about.ranks[0]} and ${about.ranks[1]}`), fact("scores", `${short(about.scores[0])} and ${short(about.scores[1])}`),
        about.probability !== null ? fact("truly above", percent(about.probability)) : null,
        about.wins ? fact("wins one comparison", `${percent(about.wins[0])}, loses ${percent(about.wins[1])}`) : null,
        fact("directly", `${short(about.for_above)} for, ${short(about.for_below)} against, ${short(about.ties)} ties`)))),
      about.ballots.length ? el("details", {}, el("summary", {}, `${about.ballots.length} of the ballots that list both`), el("ul", {}, about.ballots.map((one) => el("li", {}, `${one.ballot}`, el("span", { class: "soft" }, one.weight === 1 ? "" : ` × ${short(one.weight)}`))))) : null);
  } catch (error) {
    fill(node, el("h2", { id: "pair-title" }, "Two items"), errorBox(error.message), close);
  }
}

const fact = (name, value) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value));

function intervals(node) {
  const some = chosenRows().slice(0, PER_PAGE);
  fill(node, charts.figure(charts.intervals(some, charts.roomIn(node), Number(query().get("level") ?? 0.95)), "intervals", `Scores${found.has_errors ? " with their intervals" : ""}, ${some.length} of ${short(found.columns.item.length)} items`));
}

async function wins(node) {
  const about = ofThisBoard(await compute(`/api/board/${id}/wins?${question()}`, {}, progressInto(place("progress"), "Computing")));
  fill(node, charts.figure(charts.winsMap(about.items, about.win, charts.roomIn(node)), "who-beats-whom", `Probability, in percent, that the row beats the column in one comparison${cut(about)}`));
}

async function ranks(node) {
  const about = ofThisBoard(await compute(`/api/board/${id}/ranks?${question()}`, {}, progressInto(place("progress"), "Computing")));
  fill(node, charts.figure(charts.rankMap(about.items, about.probability, charts.roomIn(node)), "ranks", `Probability of each rank${cut(about)}`));
}

/** How few votes and voters decide the first places, and which they are. */
async function fragility(node) {
  const about = ofThisBoard(await compute(`/api/board/${id}/fragility?${question()}`, {}, progressInto(place("progress"), "Ranking again without some votes")));
  const removed = (one) => {
    const names = [...new Set(one.rows.flatMap((row) => Object.keys(row)))];
    const text = (value) => (typeof value === "number" ? short(value) : String(value ?? ""));
    return el("details", {}, el("summary", {}, one.rows.length < one.total ? `The first ${one.rows.length} of ${short(one.total)} rows` : "They are these"),
      wide(el("table", { class: "ranking left" }, el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, one.rows.map((row) => el("tr", {}, names.map((name, k) => el(k ? "td" : "th", k ? {} : { scope: "row" }, text(row[name])))))))));
  };
  fill(node, el("p", {}, "Without these votes another item has the place; each set was found by ranking again without it. “At most”: a smaller set may do the same."),
    el("ul", { class: "plain" }, about.places.map((one) => el("li", {}, el("p", {}, `${one.words}.`), one.rows.length ? removed(one) : null))));
}

const cut = (about) => (about.items.length < about.total ? `; the best ${about.items.length} of ${short(about.total)} items` : "");

async function over_time(node) {
  if (!found.time.known) return void fill(node, askForTime());
  const items = ["a", "b"].map((name) => query().get(name)).filter(Boolean);
  const about = ofThisBoard(await compute(`/api/board/${id}/history?${question()}`, { items }, progressInto(place("progress"), "Computing")));
  const moves = query().get("p.drift");
  const moving = { method: "bradley-terry", "p.drift": "learn", "p.step": about.step };
  const at = menu([["", "the last"], ...about.times], query().get("at") ?? "", { "data-control": "at", onchange: (event) => go({ at: event.target.value, ...(moves || !event.target.value ? {} : moving) }, { ask: true }) });
  fill(node, el("p", {}, "Scores that move by a random walk; where an item is compared seldom its band is wide. Choose items in the ranking to see them here."),
    el("div", { class: "controls" }, field("Board at", at)),
    charts.figure(charts.history(about, charts.roomIn(node), Number(query().get("level") ?? 0.95)), "history", `Scores over time with their intervals; ${about.items.length} of ${short(about.total)} items`, about.items),
    about.notes.length ? el("ul", { class: "notes" }, about.notes.map((note) => el("li", {}, note))) : null,
    moves ? null : el("p", { class: "soft" }, "The ranking above holds scores still. ", el("button", { type: "button", onclick: () => go(moving, { ask: true }) }, "Let them move there, too")),
    about.command ? copyable("Command", known(about.command)) : null, copyable("Python", known(about.python)));
}

/** Which column says when votes were given; the choice is kept with the dataset. */
function askForTime() {
  const column = menu(found.time.columns, found.time.guess, { id: "time-column" });
  return el("form", { class: "controls", onsubmit: async (event) => {
    event.preventDefault();
    try {
      await api("PUT", `/api/data/${id}/reading`, { reading: { ...found.reading, time: column.value } });
      await recompute();
    } catch (error) {
      say(error.message, "error");
    }
  } }, field("Which column says when a vote was given?", column), el("button", { type: "submit", class: "primary" }, "Read it as time"));
}

function voters(node) {
  fill(node, el("p", {}, "Adherence: how closely each voter follows the consensus; a voter near 0 votes at random."),
    wide(el("table", { class: "ranking" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "voter"), el("th", { scope: "col" }, "adherence"))), el("tbody", {}, found.voters.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "num" }, short(value))))))));
}

function controls(node) {
  table(node, found.beside.controls, "Effects that were fitted with the scores; items are ranked without them");
}

function raters(node) {
  table(node, found.beside.agents, "What was learned of each voter with the scores");
}

/** Rows of a frame as a table. */
function table(node, some, caption) {
  const names = Object.keys(some[0] ?? {});
  const text = (value) => (typeof value === "number" ? short(value) : value === null ? "" : String(value));
  fill(node, wide(el("table", { class: "ranking left" }, el("caption", {}, caption), el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, name.replaceAll("_", " "))))),
    el("tbody", {}, some.slice(0, 500).map((row) => el("tr", {}, names.map((name, k) => el(k ? "td" : "th", k ? { class: "num" } : { scope: "row" }, text(row[name])))))))));
}

function contests(node) {
  fill(node, wide(el("table", { class: "ranking" }, el("thead", {}, el("tr", {}, ["contest", "items", "first"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, found.instances.map((one) =>
    el("tr", {}, el("th", { scope: "row" }, el("button", { type: "button", class: "item", onclick: () => go({ instance: one.name, view: "" }, { ask: true }) }, one.name)), el("td", { class: "num" }, String(one.items)), el("td", {}, one.first)))))));
}

function exports(node) {
  const link = (kind, words) => el("li", {}, el("a", { class: "button", href: `/board/${id}/export.${kind}?${question()}`, download: true }, words));
  fill(node, el("ul", { class: "plain actions" }, link("html", "Page (HTML)"), link("csv", "CSV"), link("json", "JSON"), link("parquet", "Parquet"), link("run", "TREC run"), link("cert.json", "Certificate")),
    el("p", { class: "soft" }, "The certificate holds what others need to compute this board anew: placet verify board.cert.json, followed by the files. Charts are saved as SVG or PNG where they are shown. The address of this page is the question: share it with whoever has the token."));
}

place("controls").addEventListener("submit", (event) => event.preventDefault());
place("question").open = roomy.matches; // folded where it stands below the ranking
place("to-question").addEventListener("click", (event) => {
  event.preventDefault();
  place("question").open = true;
  place("question").scrollIntoView({ block: "nearest" });
  (place("controls").querySelector("select, input") ?? place("question").querySelector("summary")).focus();
});
window.addEventListener("popstate", () => recompute());
try {
  catalog = await compute("/api/catalog", {});
  await recompute();
} catch (error) {
  fill(place("notes"), errorBox(error.message));
}
