// A page that shows what was read from a file says so when the file has changed, and offers what is there now.
import { api, el } from "./core.js";

const EVERY = 4000;
let timer = null;

/** Watch the file of a dataset; `stamp` is that of the content shown, `again` shows the new one. */
export const watchFile = (id, name, stamp, again) => watchFiles(stamp ? [[id, name, stamp]] : [], again);

/** Watch the files of several datasets: of each its id, its name and the stamp of the content shown. */
export function watchFiles(shown, again) {
  clearTimeout(timer);
  document.getElementById("changed")?.remove();
  if (!shown.length) return;
  const look = async () => {
    try {
      for (const [id, name, stamp] of document.hidden ? [] : shown) {
        const now = await api("GET", `/api/data/${id}/stamp`);
        if (now.stamp !== stamp) return tellChanged(name, again);
      }
    } catch {
      // the server is away: the next look may find it
    }
    timer = setTimeout(look, EVERY);
  };
  timer = setTimeout(look, EVERY);
}

/** Say that the file has changed, above everything that was computed from the old one. */
export function tellChanged(name, again) {
  clearTimeout(timer);
  if (document.getElementById("changed")) return;
  const button = el("button", { type: "button", onclick: async () => { document.getElementById("changed")?.remove(); await again(); } }, "Show the new one");
  document.querySelector("h1").after(el("div", { id: "changed", class: "warning", role: "status" }, el("p", {}, `${name} has changed since this was computed. `, button)));
}
