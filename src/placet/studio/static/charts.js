// Charts by Observable Plot; numbers come from the server, here they are only drawn.
import { el, percent, save, short } from "./core.js";

const ink = "currentColor";
const accent = "rgb(var(--accent))";
const other = "rgb(var(--other))";

/** Width that a chart may take. */
export const roomIn = (node) => Math.max(300, Math.min(1100, node.clientWidth || 800));

function draw(options) {
  const chart = window.Plot.plot({ style: { background: "transparent", color: "inherit", fontSize: "12px" }, ...options });
  const svg = drawing(chart);
  svg.setAttribute("role", "img"); // one picture with one description; its parts have none of their own
  for (const part of svg.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
  return chart;
}

/** The drawing itself, where the chart stands in a figure of its own. */
const drawing = (chart) => (chart.tagName.toLowerCase() === "svg" ? chart : [...chart.querySelectorAll("svg")].at(-1));

/** The names that a legend shows, in the order of their colors. */
export const namesOf = (rows, key) => [...new Set(rows.map((row) => row[key]))].sort();

/** Which color stands for which name. */
const legend = (names) => el("p", { class: "legend" }, names.map((name, k) => el("span", {}, el("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, el("rect", { width: 10, height: 10, rx: 2, fill: palette(names.length)[k] })), ` ${name}`)));

/** Scores with their intervals, best first. */
export function intervals(rows, width, level) {
  const known = rows.some((row) => row.low !== null && row.low !== undefined);
  const marks = [window.Plot.gridX({ strokeOpacity: 0.12 })];
  if (known) marks.push(window.Plot.ruleY(rows, { y: "item", x1: "low", x2: "high", stroke: accent, strokeWidth: 3, strokeOpacity: 0.45 }));
  marks.push(window.Plot.dot(rows, { y: "item", x: "score", fill: accent, r: 3.5, channels: { rank: "rank" }, tip: { format: { x: (d) => short(d), y: true } } }));
  const { clip, room } = labels(rows.map((row) => row.item), width);
  return draw({
    width, marginLeft: room, height: 60 + 18 * rows.length, marginBottom: 40,
    y: { domain: rows.map((row) => row.item), label: null, tickFormat: clip }, x: { label: known ? `score, with its ${100 * level}% interval` : "score", nice: true },
    ariaLabel: "Scores and intervals", ariaDescription: `${rows.length} items, best first`, marks,
  });
}

/** Scores over time, with bands of their intervals. */
export function history(about, width, level) {
  const c = about.columns;
  const rows = c.item.map((item, k) => ({ item, time: about.dates ? new Date(c.time[k]) : c.time[k], score: c.score[k], low: c.low[k], high: c.high[k] }));
  const color = { type: "ordinal", domain: about.items, range: palette(about.items.length) };
  return draw({
    width, height: 420, marginLeft: 50, marginBottom: 40, x: { label: "time", type: about.dates ? "utc" : "linear" }, y: { label: `score, with its ${100 * level}% interval`, grid: true }, color, ariaLabel: "Scores over time",
    marks: [
      window.Plot.areaY(rows, { x: "time", y1: "low", y2: "high", z: "item", fill: "item", fillOpacity: 0.12 }),
      window.Plot.lineY(rows, { x: "time", y: "score", z: "item", stroke: "item", strokeWidth: 2 }),
      window.Plot.dot(rows, { x: "time", y: "score", fill: "item", r: 2.5, tip: true, title: (d) => `${d.item}: ${short(d.score)} (${short(d.low)} to ${short(d.high)})` }),
    ],
  });
}

/** Probabilities that the row beats the column. */
export function winsMap(items, win, width) {
  const cells = items.flatMap((row, i) => items.map((column, j) => ({ row, column, value: win[i][j], lead: lead(win[i][j], win[j][i]) }))).filter((cell) => cell.value !== null);
  const { clip, room: left } = labels(items, width);
  const size = Math.min(width, left + 20 + (items.length > 12 ? 32 : 46) * items.length);
  return draw({
    width: size, height: size, marginLeft: left, marginTop: left, padding: 0.05,
    x: { domain: items, label: null, axis: "top", tickRotate: -90, tickFormat: clip }, y: { domain: items, label: null, tickFormat: clip },
    color: { type: "diverging-pow", exponent: 0.7, domain: [-1, 1], range: ["#a34a1f", "#59626e", "#23609f"], interpolate: "rgb" }, // white stands out from all
    ariaLabel: "Who beats whom", ariaDescription: "Blue: the row wins more often; brown: the column does",
    marks: [
      window.Plot.cell(cells, { x: "column", y: "row", fill: "lead", tip: true, title: (cell) => `${cell.row} beats ${cell.column} with probability ${percent(cell.value)}` }),
      (size - left) / items.length > 24 ? window.Plot.text(cells, { x: "column", y: "row", text: (cell) => `${Math.round(100 * cell.value)}`, fill: "white", fontSize: 11 }) : null,
    ],
  });
}

const lead = (win, loss) => (win + loss > 0 ? (win - loss) / (win + loss) : 0);

/** For each item its possible ranks, darker where more probable. */
export function rankMap(items, probability, width) {
  const cells = items.flatMap((item, i) => probability[i].map((value, k) => ({ item, rank: k + 1, value }))).filter((cell) => cell.value >= 0.005);
  const { clip, room } = labels(items, width);
  return draw({
    width, height: 60 + 20 * items.length, marginLeft: room, marginBottom: 40, padding: 0.05,
    y: { domain: items, label: null, tickFormat: clip }, x: { type: "band", label: "rank", domain: [...Array(probability[0].length).keys()].map((k) => k + 1), ticks: probability[0].length > 30 ? 10 : undefined },
    opacity: { range: [0.08, 1], domain: [0, 1] }, ariaLabel: "Probability of each rank",
    marks: [window.Plot.cell(cells, { x: "rank", y: "item", fill: accent, fillOpacity: "value", tip: true, title: (cell) => `${cell.item}: rank ${cell.rank} with probability ${percent(cell.value)}` })],
  });
}

/** Positions of items under several methods. */
export function bump(methods, items, positions, width) {
  const rows = methods.flatMap((method, m) => items.map((item, i) => ({ method, item, position: positions[m][i] })));
  const { clip, room } = labels(items, width);
  const together = (method) => [...window.d3.group(rows.filter((row) => row.method === method), (row) => row.position)].map(([position, some]) => ({ method, position, text: clip(some.map((row) => row.item).join(", ")) }));
  const names = (method, side) => window.Plot.text(together(method), { x: "method", y: "position", text: "text", textAnchor: side > 0 ? "start" : "end", dx: 10 * side, fill: ink });
  return draw({
    width: Math.max(width, 2 * room + 28 * methods.length), height: 110 + 24 * Math.max(...rows.map((row) => row.position)), marginLeft: room + 12, marginRight: room + 12, marginTop: 100, marginBottom: 20,
    x: { type: "point", domain: methods, label: null, axis: "top", tickRotate: -50 }, y: { reverse: true, axis: null },
    color: { type: "ordinal", domain: items, range: palette(items.length) }, ariaLabel: "Positions of items by method, the best at the top",
    marks: [
      window.Plot.line(rows, { x: "method", y: "position", z: "item", stroke: "item", strokeWidth: 2.5, strokeOpacity: 0.8, curve: "bump-x" }),
      window.Plot.dot(rows, { x: "method", y: "position", fill: "item", r: 4, tip: true, title: (row) => `${row.item}: position ${row.position} by ${row.method}` }),
      names(methods[0], -1),
      names(methods.at(-1), 1),
    ],
  });
}

/** A metric per step, one line for each run. */
export function curves(rows, width, label) {
  return draw({
    width, height: 280, marginLeft: 55, marginBottom: 40, x: { label: "step", ticks: 8, tickFormat: (step) => (Number.isInteger(step) ? String(step) : "") }, y: { label, grid: true }, color: { domain: namesOf(rows, "run"), range: palette(8) }, ariaLabel: `${label} per step`,
    marks: [window.Plot.lineY(rows, { x: "step", y: "value", stroke: "run", strokeWidth: 2, tip: true })],
  });
}

/** A track on a map-like plot: its way, where it may have been, and the beacons. */
export function trackMap(track, width, labels) {
  const range = (values) => { const low = Math.min(...values), high = Math.max(...values), room = 0.04 * (high - low || 1); return [low - room, high + room]; };
  const height = Math.min(620, 0.7 * width);
  const xs = track.outlines.flat().map((p) => p[0]).concat(track.way.map((p) => p.x), track.beacons.map((p) => p.x));
  const ys = track.outlines.flat().map((p) => p[1]).concat(track.way.map((p) => p.y), track.beacons.map((p) => p.y));
  const outline = track.outlines.flatMap((points, k) => [...points, points[0]].map(([x, y]) => ({ x, y, k })));
  const [x, y] = sameScale(range(xs), range(ys), width - 75, height - 60, labels[1] === "latitude");
  return draw({
    width, height, marginLeft: 55, marginRight: 20, marginTop: 20, marginBottom: 40, grid: true, x: { domain: x, label: labels[0] }, y: { domain: y, label: labels[1] }, ariaLabel: "Track",
    marks: [
      window.Plot.line(outline, { x: "x", y: "y", z: "k", stroke: accent, strokeOpacity: 0.25, fill: accent, fillOpacity: 0.06 }),
      window.Plot.line(track.way, { x: "x", y: "y", stroke: accent, strokeWidth: 2 }),
      window.Plot.dot(track.way, { x: "x", y: "y", fill: (d) => (d.agree ? accent : other), r: 3, tip: true, title: (d) => `${d.date}: ± ${short(d.sd)} km${d.agree ? "" : "; not determined"}` }),
      window.Plot.dot(track.beacons, { x: "x", y: "y", symbol: "triangle", fill: other, r: 6, tip: true, title: "id" }),
      window.Plot.text(track.beacons, { x: "x", y: "y", text: "id", dy: -12, fill: ink }),
    ],
  });
}

/** Two ranges widened so that a distance is as long across as it is up; degrees of longitude shrink with the latitude. */
function sameScale(x, y, across, up, degrees) {
  const shrink = degrees ? Math.max(0.05, Math.cos(((y[0] + y[1]) / 2) * (Math.PI / 180))) : 1;
  const unit = Math.max((x[1] - x[0]) / across, (y[1] - y[0]) / up / shrink);
  const around = ([low, high], length) => [(low + high - length) / 2, (low + high + length) / 2];
  return [around(x, unit * across), around(y, unit * shrink * up)];
}

/** Arrival times by day, each with its most probable source. */
export function arrivals(rows, width) {
  const sources = namesOf(rows, "source");
  return draw({
    width, height: 300, marginLeft: 60, marginBottom: 40, x: { label: "day" }, y: { label: "arrival, s", grid: true }, color: { domain: sources, range: palette(sources.length) },
    ariaLabel: "Arrivals and their sources",
    marks: [window.Plot.dot(rows, { x: "day", y: "time", fill: "source", r: 3, fillOpacity: "probability", tip: true, title: (d) => `day ${d.day}: ${short(d.time)} s from ${d.source} (${percent(d.probability)})` })],
  });
}

const COLORS = ["#3b76bd", "#c2602f", "#3f8f5b", "#9a5bb0", "#b08a1e", "#2b8f9b", "#c4527f", "#7a7f3a", "#6a6fc9", "#a3533f"];
const palette = (n) => Array.from({ length: Math.max(n, 1) }, (_, k) => COLORS[k % COLORS.length]);
const clipTo = (most) => (name) => (String(name).length > most ? `${String(name).slice(0, most - 1)}…` : String(name));

/** Room for the names of items beside a chart, and how a name is cut to fit it. */
function labels(names, width) {
  const most = Math.max(6, Math.min(26, Math.floor((0.36 * width - 14) / 7.5)));
  const clip = clipTo(most);
  return { clip, room: Math.max(60, 16 + 7.5 * Math.max(...names.map((name) => clip(name).length))) };
}

/** The chart with buttons that save it. */
export function figure(chart, name, caption, names = []) {
  const svg = drawing(chart);
  return el("figure", { class: "chart" }, names.length ? legend(names) : null, el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": caption }, chart),
    el("figcaption", {}, caption, " ",
      el("button", { type: "button", onclick: () => save(new Blob([standalone(svg)], { type: "image/svg+xml" }), `${name}.svg`) }, "SVG"), " ",
      el("button", { type: "button", onclick: () => savePng(svg, `${name}.png`) }, "PNG")));
}

/** The SVG with its colors written out, so that it stands alone. */
function standalone(svg) {
  const style = getComputedStyle(document.documentElement);
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  let text = new XMLSerializer().serializeToString(copy);
  text = text.replaceAll("currentColor", style.getPropertyValue("--ink").trim());
  for (const name of ["accent", "other"]) text = text.replaceAll(`var(--${name})`, style.getPropertyValue(`--${name}`).trim());
  text = text.replaceAll("var(--plot-background)", style.getPropertyValue("--paper").trim());
  const paper = `<rect width="100%" height="100%" fill="${style.getPropertyValue("--paper").trim()}"/>`;
  return text.replace(/^(<svg[^>]*>)/, `$1${paper}`);
}

async function savePng(svg, name) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
  await image.decode();
  const canvas = el("canvas", { width: 2 * svg.width.baseVal.value, height: 2 * svg.height.baseVal.value });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  context.drawImage(image, 0, 0);
  canvas.toBlob((blob) => save(blob, name), "image/png");
}
