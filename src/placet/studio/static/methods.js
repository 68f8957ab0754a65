// Methods side by side: positions, agreement, contested pairs, and the audit of one method.
import { compute, copyable, el, errorBox, field, filesOf, fill, menu, progressInto, short, wide, withKnownNames } from "./core.js";
import { watchFile } from "./changed.js";
import * as charts from "./charts.js";

const id = document.getElementById("methods").dataset.id;
const place = (name) => document.getElementById(name);
const query = new URLSearchParams(location.search);

function show(found) {
  watchFile(id, document.querySelector(".crumbs").textContent.split("/").at(-1).trim(), found.stamp, compare);
  const winners = new Map();
  for (const [method, who] of Object.entries(found.winners)) winners.set(who.join(", "), [...(winners.get(who.join(", ")) ?? []), method]);
  const sorted = [...winners].sort((x, y) => y[1].length - x[1].length);
  fill(place("lead"), sorted.length === 1 ? [el("strong", {}, sorted[0][0]), ` comes first by all ${found.methods.length} methods.`]
    : [el("strong", {}, sorted[0][0]), ` comes first by ${sorted[0][1].length} of ${found.methods.length} methods; `, sorted.slice(1, 4).map(([who, by], k) => [k ? "; " : "", el("strong", {}, who), ` by ${by.slice(0, 5).join(", ")}${by.length > 5 ? ", …" : ""}`]), "."]);
  fill(place("bump"), charts.figure(charts.bump(found.methods, found.items, found.positions, charts.roomIn(place("bump"))), "positions", `Positions of ${found.items.length} of ${short(found.total)} items; methods that agree stand side by side`), table(found));
  const n = found.n_contested;
  fill(place("contested"), el("p", {}, n ? `${short(n)} of ${short(found.pairs)} pairs are ordered in opposite ways by some two methods` : `No pair of ${short(found.pairs)} is ordered in opposite ways by two methods`, found.tied_by_some ? `; ${short(found.tied_by_some)} more are tied by some and ordered by others.` : "."),
    n ? wide(el("table", { class: "ranking" }, el("thead", {}, el("tr", {}, ["pair", "first above second", "second above first", "tied"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, found.contested.map((c) => el("tr", {}, el("th", { scope: "row" }, `${c.x} and ${c.y}`), [c.above, c.below, c.tied].map((some) => el("td", {}, some.length > 6 ? `${some.length}: ${some.slice(0, 6).join(", ")}, …` : some.join(", ")))))))) : null);
  const left = new Map(); // a reason that many methods share is said once
  for (const [name, why] of Object.entries(found.left_out)) {
    const reason = why.replaceAll(`'${name}'`, "it");
    left.set(reason, [...(left.get(reason) ?? []), name]);
  }
  const said = (why, names) => (names.length > 1 ? why.replace(/^it\b/, "each") : why);
  fill(place("left-out"), left.size ? el("dl", {}, [...left].map(([why, names]) => [el("dt", {}, el("strong", {}, names.join(", "))), el("dd", {}, said(why, names))])) : el("p", {}, "Nothing: every method took these data."));
  const chosen = found.methods.includes(query.get("method")) ? query.get("method") : found.methods.includes("borda") ? "borda" : found.methods[0];
  fill(place("audit-controls"), field("Method", menu(found.methods, chosen, { onchange: (event) => audit(event.target.value) })));
  return audit(chosen);
}

function table(found) {
  return el("details", {}, el("summary", {}, "The same as a table"), wide(el("table", { class: "ranking" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "item"), found.methods.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, found.items.map((item, i) => el("tr", {}, el("th", { scope: "row" }, item), found.positions.map((row) => el("td", { class: "num" }, String(row[i])))))))));
}

async function audit(method) {
  query.set("method", method);
  history.replaceState(null, "", `?${query}`);
  try {
    const found = await compute(`/api/methods/${id}/audit?${query}`, {}, progressInto(place("audit-progress"), `Auditing ${method}`));
    fill(place("audit"), wide(el("table", { class: "ranking" }, el("caption", {}, `What ${method} keeps and breaks on these data`), el("thead", {}, el("tr", {}, ["asked", "verdict", "in words"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, found.findings.map((one) => el("tr", {}, el("td", {}, one.check), el("td", {}, one.verdict), el("td", {}, one.text)))))),
    found.witnesses.length ? el("details", {}, el("summary", {}, `${found.witnesses.length} majorities that it overrules`), el("ul", {}, found.witnesses.map((words) => el("li", {}, words)))) : null,
    found.command ? copyable("Command", withKnownNames(found.command, filesOf(document.getElementById("methods")))) : null);
  } catch (error) {
    if (error.name !== "AbortError") fill(place("audit"), errorBox(error.message));
  }
}

async function compare() {
  try {
    await show(await compute(`/api/methods/${id}?${query}`, {}, progressInto(place("progress"), "Running all methods")));
  } catch (error) {
    fill(place("lead"), errorBox(error.message));
  }
}

await compare();
