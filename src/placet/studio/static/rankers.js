// Rankers: train with a metric per step, compare runs, look at queries, explain a row above another.
import { api, compute, el, errorBox, field, fill, menu, progressInto, rounded, say, short, wide } from "./core.js";
import * as charts from "./charts.js";

const id = document.getElementById("rankers").dataset.id;
const place = (name) => document.getElementById(name);
const offered = await compute("/api/rankers", {});
let runs = [];
let chosen = [];

/** About the standard error of a difference: 95% intervals are four of them wide. */
const spread = (row) => (row.high - row.low) / 4;

function showForm(name) {
  const ranker = offered.rankers.find((one) => one.name === name);
  const inputs = {};
  const add = (key, label, input) => { inputs[key] = input; return field(label, input); };
  const text = (value = "") => el("input", { type: "text", value, size: 8 });
  const form = place("train");
  fill(form,
    add("ranker", "Ranker", menu(offered.rankers.map((one) => one.name), name, { onchange: (event) => showForm(event.target.value) })),
    ranker.has_loss ? add("loss", "Loss", menu([["", "its own"], ...offered.losses], "")) : null,
    add("metric", "Metric", text("ndcg@10")), add("validation", "Validation share", el("input", { type: "number", min: 0.05, max: 0.9, step: 0.05, value: 0.25 })), add("seed", "Seed", el("input", { type: "number", value: 0 })),
    el("details", {}, el("summary", {}, "Parameters"), el("div", { class: "controls" }, ranker.controls.map((one) => add(`p.${one.name}`, one.name.replaceAll("_", " "),
      one.input === "select" ? menu([["", "default"], ...one.choices], "") : el("input", { type: "text", size: 8, placeholder: one.default === null ? "none" : String(one.default) }))))),
    el("button", { class: "primary", type: "submit" }, "Train"));
  form.onsubmit = (event) => {
    event.preventDefault();
    const params = Object.fromEntries(Object.entries(inputs).filter(([key]) => key.startsWith("p.")).map(([key, input]) => [key.slice(2), input.value]));
    train({ ranker: inputs.ranker.value, loss: inputs.loss?.value ?? "", metric: inputs.metric.value, validation: Number(inputs.validation.value), seed: Number(inputs.seed.value), params });
  };
}

async function train(settings) {
  const bar = progressInto(place("progress"), `Training ${settings.ranker}`);
  try {
    await compute(`/api/rankers/${id}/train`, settings, (job, cancel) => {
      bar(job, cancel);
      drawCurves(job.words.filter(Array.isArray).map(([step, value]) => ({ step, value, run: "now" })), settings.metric);
    });
    await new Promise((resolve) => setTimeout(resolve, 150));
    await refresh();
    say("The run is kept.");
  } catch (error) {
    fill(place("progress"), error.name === "AbortError" ? el("p", {}, "Cancelled; nothing was kept.") : errorBox(error.message));
  }
}

const label = (run) => `${run.settings.ranker}${run.settings.loss ? `, ${run.settings.loss}` : ""} (${run.id.slice(0, 4)})`;

function drawCurves(now, metric) {
  const rows = [...runs.slice(0, 5).flatMap((run) => run.summary.history.map(([step, value]) => ({ step, value, run: label(run) }))), ...now];
  if (rows.length < 2) return void fill(place("curve"));
  fill(place("curve"), charts.figure(charts.curves(rows, charts.roomIn(place("curve")), metric), "training", `${metric} on the validation queries, per step`, charts.namesOf(rows, "run")));
}

async function refresh() {
  runs = await api("GET", `/api/rankers/${id}/runs`);
  chosen = chosen.filter((key) => runs.some((run) => run.id === key));
  drawCurves([], runs[0]?.settings.metric ?? "ndcg@10");
  fill(place("runs"), runs.length ? wide(el("table", { class: "ranking left" }, el("thead", {}, el("tr", {}, ["compare", "run", "metric", "mean", "queries", "parameters", ""].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, runs.map(line)))) : el("p", {}, "None yet."));
}

function line(run) {
  const box = el("input", { type: "checkbox", checked: chosen.includes(run.id), "aria-label": `Compare ${label(run)}`, onchange: (event) => {
    chosen = event.target.checked ? [...chosen, run.id] : chosen.filter((key) => key !== run.id);
    compareRuns();
  } });
  return el("tr", {}, el("td", {}, box), el("th", { scope: "row" }, label(run)), el("td", {}, run.settings.metric), el("td", { class: "num" }, `${rounded(run.summary.mean, run.summary.stderr)} ± ${rounded(run.summary.stderr, run.summary.stderr)}`),
    el("td", { class: "num" }, short(run.summary.queries)), el("td", {}, Object.entries(run.settings.params).map(([key, value]) => `${key}=${value}`).join(", ")),
    el("td", { class: "actions" }, el("a", { class: "button", href: `/rankers/${id}/${run.id}.placet`, download: true, "aria-label": `Download ${label(run)}` }, "Download"),
      el("button", { type: "button", class: "quiet", "aria-label": `Remove ${label(run)}`, onclick: async () => { await api("DELETE", `/api/rankers/${id}/runs/${run.id}`); await refresh(); } }, "Remove")));
}

async function compareRuns() {
  place("query").hidden = true;
  if (!chosen.length) return void fill(place("compare"), el("p", { class: "soft" }, "Choose two runs above."));
  try {
    const found = await compute(`/api/rankers/${id}/compare`, { runs: chosen }, progressInto(place("progress"), "Comparing"));
    const name = (key) => label(runs.find((run) => run.id === key));
    fill(place("compare"), wide(el("table", { class: "ranking left" }, el("caption", {}, `${found.metric} on the same validation queries`), el("thead", {}, el("tr", {}, ["run", "mean", "minus the first", "95% interval", "p"].map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, found.rows.map((row) => el("tr", {}, el("th", { scope: "row" }, name(row.run)), el("td", { class: "num" }, `${rounded(row.mean, row.stderr)} ± ${rounded(row.stderr, row.stderr)}`), el("td", { class: "num" }, row.difference === undefined ? "" : rounded(row.difference, spread(row))),
        el("td", { class: "num" }, row.low === undefined ? "" : `${rounded(row.low, spread(row))} … ${rounded(row.high, spread(row))}`), el("td", { class: "num" }, row.p === undefined ? "" : short(row.p, 2))))))),
    found.differ.length ? [el("h3", {}, "Queries where the first two differ most"), el("ul", { class: "plain queries" }, found.differ.slice(0, 12).map((one) => el("li", {}, el("button", { type: "button", onclick: () => showQuery(one.query, one.name) }, `query ${one.name}`), ` ${short(one.first)} and ${short(one.second)}`)))] : null,
    found.rows.length === 1 ? el("p", {}, el("button", { type: "button", onclick: () => showQuery(0, "1") }, "Look at a query")) : null);
  } catch (error) {
    fill(place("compare"), errorBox(error.message));
  }
}

async function showQuery(number, name) {
  const two = chosen.slice(0, 2);
  const found = await compute(`/api/rankers/${id}/query`, { runs: two, query: number });
  const node = place("query");
  let picked = [];
  const why = el("div", {});
  const pick = async (row, event) => {
    picked = event.target.checked ? [...picked, row] : picked.filter((one) => one !== row);
    if (picked.length !== 2) return void fill(why, el("p", { class: "soft" }, "Choose two rows to see why one is above the other."));
    try {
      const [first, second] = picked;
      const about = await compute(`/api/rankers/${id}/explain`, { run: two[0], query: number, first, second });
      const largest = Math.max(...about.parts.map(([, value]) => Math.abs(value))) || 1;
      fill(why, el("h3", {}, `Row ${first} minus row ${second}: ${short(about.difference)}`), el("table", { class: "ranking" }, el("caption", {}, "What each feature adds to the difference"), el("tbody", {}, about.parts.map(([feature, value]) => el("tr", {}, el("th", { scope: "row" }, /^\d+$/.test(feature) ? `feature ${feature}` : feature), el("td", { class: "plot" }, el("svg", { viewBox: "-50 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": short(value) },
        el("rect", { class: "dot", x: Math.min(0, (50 * value) / largest), width: Math.abs((50 * value) / largest), y: 2, height: 6 }))), el("td", { class: "num" }, short(value)))))));
    } catch (error) {
      fill(why, errorBox(error.message));
    }
  };
  node.hidden = false;
  fill(node, el("h2", { id: "query-title" }, `Query ${name}`), wide(el("table", { class: "ranking left" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "choose"), el("th", { scope: "col" }, "row"), el("th", { scope: "col" }, "grade"), two.map((key) => el("th", { scope: "col" }, `place by ${label(runs.find((run) => run.id === key))}`)))),
    el("tbody", {}, found.rows.slice(0, 50).map((row) => el("tr", {}, el("td", {}, el("input", { type: "checkbox", "aria-label": `Row ${row.row}`, onchange: (event) => pick(row.row, event) })), el("td", { class: "num" }, String(row.row)), el("td", { class: "num" }, short(row.grade)), row.places.map((at, k) => el("td", { class: "num" }, `${at} (${short(row.scores[k])})`))))))), why);
  fill(why, el("p", { class: "soft" }, "Choose two rows to see why one is above the other."));
  node.scrollIntoView({ block: "nearest" });
}

showForm("linear");
await refresh();
