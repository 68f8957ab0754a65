// Sources of one fit: the address names datasets, or one and its column of sources, and the target; a change of the target asks again.
import { compute, copyable, el, errorBox, fill, lead, progressInto, rounded, say, short, wide, withKnownNames } from "./core.js";
import { watchFiles } from "./changed.js";

const place = (name) => document.getElementById(name);
const { datasets, column } = JSON.parse(place("sources").dataset.asked);
const files = datasets.flatMap(([, name, path]) => (path.startsWith("[") ? JSON.parse(path) : [[path, name]]));
const known = (text) => withKnownNames(text, files);
let running = null;

const query = () => new URLSearchParams(location.search);

function table(heads, rows, caption) {
  return wide(el("table", { class: "ranking left" }, el("caption", {}, caption), el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, k) => el(k ? "td" : "th", k ? { class: "num" } : { scope: "row" }, cell)))))));
}

const withError = (value, error) => (value === null || value === undefined ? "" : error > 0 ? `${rounded(value, error)} ± ${short(error, 1)}` : short(value));

const ranks = (low, high) => (low === undefined ? "" : low === high ? String(low) : `${low} to ${high}`);

/** The sources to choose the target from; the values of a column are known once it is read. */
function offerTargets(found) {
  const choices = column ? found.names.map((name) => [name, name]) : datasets;
  fill(place("target"), el("option", { value: "" }, "none: what all have in common"), choices.map(([value, name]) => el("option", { value }, name)));
  place("target").value = query().get("target") ?? "";
}

function show(found) {
  const c = found.columns;
  offerTargets(found);
  watchFiles(datasets.map(([key, name], k) => [key, name, found.stamps[k]]), recompute);
  fill(place("lead"), lead(found));
  fill(place("notes"), el("ul", { class: "notes" }, found.notes.map((note) => el("li", {}, note))));
  fill(place("ranking"), table(["item", "rank", "could be", "score"], c.item.map((item, k) => [item, String(c.rank[k]), ranks(c.rank_low?.[k], c.rank_high?.[k]), withError(c.score[k], c.stderr?.[k])]), `${c.item.length} items`));
  const favors = found.sources.some((row) => row.favors);
  fill(place("each"), table(["source", "amount", "agreement", "scale", "width", "worth", ...(favors ? ["what it favors"] : [])], found.sources.map((row) => [String(row.source), `${short(row.amount)} ${row.kind}`, withError(row.agreement, row.agreement_stderr),
    withError(row.scale, row.scale_stderr), withError(row.width, row.width_stderr), row.worth === null ? "" : short(row.worth, 2), ...(favors ? [row.favors] : [])]), "Agreement with the scores above, how far apart a source sees the items, and how many votes of the target it was worth"));
  fill(place("differ"), found.deviations.length ? table(["item", "source", "deviation", "p (Holm)"], found.deviations.map((row) => [String(row.item), String(row.source), withError(row.deviation, row.stderr), short(row.p, 2)]), "The deviations farthest beyond chance") : el("p", {}, "Nowhere."));
  fill(place("same"), found.command ? copyable("Command", known(found.command)) : null, copyable("Python", known(found.python)),
    el("p", { class: "actions" }, el("a", { class: "button", href: `/sources/export.html?${query()}`, download: true }, "Page (HTML)")));
}

async function recompute() {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  try {
    show(await compute(`/api/sources?${query()}`, {}, progressInto(place("progress"), "Computing"), signal));
  } catch (error) {
    if (error.name === "AbortError") return signal.aborted ? undefined : say("Cancelled.");
    for (const name of ["ranking", "each", "differ", "same", "lead"]) fill(place(name));
    fill(place("notes"), errorBox(error.message));
  }
}

place("target").addEventListener("change", (event) => {
  const values = query();
  values.delete("target");
  if (event.target.value) values.set("target", event.target.value);
  history.pushState(null, "", `?${values}`);
  recompute();
});
addEventListener("popstate", () => { place("target").value = query().get("target") ?? ""; recompute(); });

await recompute();
