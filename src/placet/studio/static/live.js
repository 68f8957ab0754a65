// Live results of a poll: asked for again and again, drawn where they changed.
import { api, el, fill, rounded, short, wide } from "./core.js";

const EVERY = 1500;

/** Keep the results of a poll up to date in an element; its owner also sees how far it is from its goal, and that it has closed. */
export function follow(node, url, { owner = false, told = () => {} } = {}) {
  let shown = "";
  let result = null;
  const again = async () => {
    try {
      const about = await api("GET", `${url}?have=${result?.of ?? ""}`);
      result = about.result ??= about.of ? result : null;
      const key = JSON.stringify([about.votes, about.open, about.result?.of]);
      if (key !== shown) draw(node, about, owner);
      if (key !== shown) told(about);
      shown = key;
    } catch (error) {
      fill(node, el("p", { class: "soft" }, error.message));
      shown = "";
    }
    setTimeout(again, document.hidden ? 4 * EVERY : EVERY);
  };
  again();
}

function draw(node, about, owner) {
  const result = about.result;
  const columns = result?.columns;
  fill(node, el("p", {}, el("strong", {}, short(about.votes)), about.votes === 1 ? " answer from " : " answers from ", el("strong", {}, short(about.voters)), about.voters === 1 ? " voter." : " voters.",
    about.open ? "" : " The poll is closed.", result && result.of < about.last ? " Newer votes are being counted." : ""),
  result?.settled ? el("p", { class: "good" }, "The goal is reached: the votes are enough.") : owner ? progress(about) : null,
  result?.error ? el("p", { class: "bad" }, result.error) : null,
  columns ? table(columns, about.level) : el("p", { class: "soft" }, about.votes ? "Counting…" : "No votes yet."));
}

function progress({ goal, result, votes }) {
  if (goal === "none" || !result?.columns) return null;
  const { missing } = result;
  return el("div", { class: "progress" },
    missing === null ? el("p", {}, "The goal is not reached; the items are too close to tell how many votes are missing.")
      : el("p", {}, el("label", { for: "to-goal" }, `About ${short(missing)} more ${missing === 1 ? "vote" : "votes"} to the goal.`), " ",
        el("progress", { id: "to-goal", max: votes + missing, value: votes })),
    result.known?.length ? el("p", { class: "soft" }, `Known so far: ${result.known.join("; ")}.`) : null);
}

function table(columns, level) {
  const ends = [...columns.low, ...columns.high];
  const low = Math.min(...ends);
  const width = Math.max(...ends) - low || 1;
  const at = (value) => (100 * (value - low)) / width;
  return wide(el("table", { class: "ranking" }, el("caption", {}, `Scores with their ${Math.round(100 * level)}% intervals, and the ranks that the votes leave open`),
    el("thead", {}, el("tr", {}, ["rank", "item", "interval", "score"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, columns.item.map((item, k) => el("tr", {},
      el("td", { class: "rank" }, String(columns.rank[k]), columns.rank_low[k] < columns.rank_high[k] ? el("span", { class: "soft" }, ` ${columns.rank_low[k]}–${columns.rank_high[k]}`) : null),
      el("th", { scope: "row" }, item),
      el("td", { class: "plot" }, el("svg", { viewBox: "-2 0 104 14", preserveAspectRatio: "none", role: "img", "aria-label": `from ${short(columns.low[k])} to ${short(columns.high[k])}` },
        el("line", { x1: 0, x2: 100, y1: 7, y2: 7, class: "axis" }), el("rect", { class: "bar", x: at(columns.low[k]).toFixed(2), width: Math.max(0.2, at(columns.high[k]) - at(columns.low[k])).toFixed(2), y: 5, height: 4 }),
        el("rect", { class: "dot", x: (at(columns.score[k]) - 0.5).toFixed(2), width: 1, y: 2, height: 10 }))),
      el("td", { class: "num" }, rounded(columns.score[k], columns.stderr[k])))))));
}
