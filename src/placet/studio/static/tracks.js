// Tracks: two tables and two places become a way with its uncertainty.
import { compute, el, errorBox, fill, progressInto } from "./core.js";
import * as charts from "./charts.js";

const place = (name) => document.getElementById(name);
const form = place("track");

const pair = (text) => text.split(",").map((part) => Number(part.trim()));

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const values = { arrivals: place("arrivals").value, beacons: place("beacons").value, start: pair(place("start").value), end: place("end").value.trim() ? pair(place("end").value) : null };
  for (const input of form.querySelectorAll("[data-number]")) values[input.id] = Number(input.value);
  try {
    show(await compute("/api/tracks", values, progressInto(place("progress"), "Tracking")));
  } catch (error) {
    fill(place("found"), error.name === "AbortError" ? el("p", {}, "Cancelled.") : errorBox(error.message));
  }
});

function show(track) {
  const node = place("found");
  const labels = track.geometry === "geographic" ? ["longitude", "latitude"] : ["x", "y"];
  const room = charts.roomIn(node);
  fill(node, el("ul", { class: "notes" }, track.notes.map((note) => el("li", {}, note))),
    charts.figure(charts.trackMap(track, room, labels), "track", "The way with 95% ellipses; triangles are beacons, brown points are not determined"),
    charts.figure(charts.arrivals(track.arrivals, room), "arrivals", "Arrivals by day and their most probable source; faint where it is unsure", charts.namesOf(track.arrivals, "source")));
}
