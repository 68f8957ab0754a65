// What all pages share: requests with the token of writes, computations with progress, and elements from data.

const csrf = () => document.querySelector('meta[name="csrf"]').content;

/** A request; what the server refuses is an Error with its words. */
export async function api(method, url, body, headers = {}) {
  const raw = body instanceof Blob;
  const response = await fetch(url, {
    method,
    headers: { "X-CSRF": csrf(), ...(body !== undefined && !raw ? { "Content-Type": "application/json" } : {}), ...headers },
    body: body === undefined ? undefined : raw ? body : JSON.stringify(body),
  });
  const text = await response.text();
  let value;
  try {
    value = text ? JSON.parse(text) : {};
  } catch {
    throw new Error("the server's answer could not be read");
  }
  if (!response.ok) throw new Error(value.error || `the server answered ${response.status}`);
  return value;
}

/** Start a computation and wait for its result; `watch(job)` is told of its state. */
export async function compute(url, body, watch = () => {}, signal = null) {
  let job = await api("POST", url, body ?? {});
  const cancel = () => api("DELETE", `/api/jobs/${job.id}`).catch(() => {});
  signal?.addEventListener("abort", cancel, { once: true });
  let first = true;
  while (job.state === "waiting" || job.state === "running") {
    watch(job, cancel);
    job = await api("GET", `/api/jobs/${job.id}?wait=${first ? "short" : "1"}`);
    first = false;
    if (signal?.aborted) break;
  }
  watch(job, cancel);
  if (signal?.aborted || job.state === "cancelled") throw new DOMException("cancelled", "AbortError");
  if (job.state === "failed") throw new Error(job.error);
  return api("GET", `/api/jobs/${job.id}/result`);
}

/** An element with attributes, listeners (onclick: f) and children; texts are always texts. */
export function el(tag, attributes = {}, ...children) {
  const svg = ["svg", "rect", "line", "circle", "title", "path", "g", "text"].includes(tag);
  const node = svg && tag !== "title" ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in node) node.value = value;
    else if (name === "checked") node.checked = Boolean(value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** The first sentence of a board: what it stresses, and the rest; in both, texts and names take turns. */
export const lead = ({ lead: [strong, rest] }) => {
  const parts = (sentence) => sentence.map((part, k) => (k % 2 ? el("span", {}, part) : part));
  return [el("strong", {}, parts(strong)), parts(rest)];
};

/** What may be wider than the screen; it can be scrolled by keyboard, too. */
export const wide = (...children) => el("div", { class: "wide", tabindex: "0" }, ...children);

const STOPS = "a[href], button, input, select, textarea, summary, [tabindex]";

/** What a control is called, the same before and after it is drawn anew. */
const calledOf = (node) => node.dataset.control ?? node.getAttribute("aria-label") ?? (node.id || `${node.tagName} ${node.textContent.trim()}`);

/** Replace what an element holds; the control that had the focus has it again, if it is still there. */
export function fill(node, ...children) {
  const had = node.contains(document.activeElement) && document.activeElement !== node ? document.activeElement : null;
  const called = had && calledOf(had);
  const [from, to] = had && ["text", "search", "textarea"].includes(had.type) ? [had.selectionStart, had.selectionEnd] : [null, null];
  const which = had ? [...node.querySelectorAll(STOPS)].filter((one) => calledOf(one) === called).indexOf(had) : 0;
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  if (had && !node.contains(had)) {
    const same = [...node.querySelectorAll(STOPS)].filter((one) => calledOf(one) === called && !one.disabled);
    const again = same[which] ?? same[0] ?? (node.hasAttribute("tabindex") ? node : null);
    again?.focus({ preventScroll: true });
    if (from !== null && again?.setSelectionRange) again.setSelectionRange(from, to);
  }
  return node;
}

/** What controls show: their words, their choices and what is chosen. */
function shownBy(node) {
  const held = [...node.querySelectorAll("input, select, textarea")].map((one) => [calledOf(one), one.type, one.checked ?? null, one.multiple ? [...one.selectedOptions].map((option) => option.value) : one.value]);
  return JSON.stringify([node.textContent, held]);
}

/** Fill an element with controls; those that would show the same stay, so that what is being typed into one goes on. */
export function fillControls(node, ...children) {
  const drawn = fill(document.createElement("div"), ...children);
  return shownBy(drawn) === shownBy(node) ? node : fill(node, ...drawn.childNodes);
}

/** A field with its label. */
export function field(label, input, help) {
  const id = input.id || `f${Math.random().toString(36).slice(2)}`;
  if (!input.id) input.dataset.control ??= label; // the id is another one when it is drawn anew
  input.id = id;
  const about = help ? el("span", { class: "soft", id: `${id}-help` }, help) : null;
  if (about) input.setAttribute("aria-describedby", about.id);
  return el("div", { class: input.type === "checkbox" ? "field check" : "field" }, el("label", { for: id }, label), input, about);
}

/** A menu of (value, words) or of plain values. */
export function menu(options, value, attributes = {}) {
  const made = options.map((option) => {
    const [key, words] = Array.isArray(option) ? option : [option, option];
    const text = words === null ? "none" : String(words);
    return el("option", { value: key === null ? "none" : String(key) }, text);
  });
  const node = el("select", attributes, made);
  node.value = value === null || value === undefined ? "none" : String(value);
  return node;
}

/** Say something to everybody, also to those who listen. */
export function say(words, kind = "info") {
  const node = document.getElementById("status");
  fill(node, el("p", { class: kind }, words));
  clearTimeout(say.timer);
  say.timer = setTimeout(() => fill(node), kind === "error" ? 12000 : 5000);
}

/** An error as a box in the page. */
export const errorBox = (words) => el("div", { class: "error-box", role: "alert" }, el("strong", {}, "This did not work. "), words);

/** A bar for a computation, with a button that cancels it; shown only where it takes a while. */
export function progressInto(node, what) {
  return (job, cancel) => {
    if (job.state !== "waiting" && job.state !== "running") return void fill(node);
    const [done, total] = job.progress ?? [0, 0];
    const words = job.words.filter((word) => typeof word === "string").at(-1);
    const bar = el("progress", { max: total || 1, ...(total ? { value: done } : {}), "aria-label": what });
    const state = job.state === "waiting" ? "waiting for its turn" : total > 1 ? `${done} of ${total}` : words ?? "";
    fill(node, el("div", { class: "working" }, el("span", {}, `${what} `, el("span", { class: "soft" }, state)), bar,
      el("button", { type: "button", onclick: cancel }, "Cancel")));
  };
}

/** A number short enough to read. */
export function short(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  const text = Number.isInteger(value) && Math.abs(value) < 1e15 ? value.toLocaleString("en") : Number(value.toPrecision(digits)).toString();
  return text.replace("-", "−");
}

/** Rounded to two digits of its standard error. */
export function rounded(value, error) {
  if (!(error > 0)) return short(value, 4);
  const digits = Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(error))));
  return value.toFixed(digits).replace("-", "−");
}

export const percent = (value) => (value === null ? "" : value > 0.999 && value < 1 ? ">99.9%" : value < 0.001 && value > 0 ? "<0.1%" : `${(100 * value).toFixed(1)}%`);

/** Save a blob under a name. */
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** A command or lines of Python with the names of files as the user knows them: an upload has another in the workspace. */
export function withKnownNames(text, files) {
  const quoted = (path) => (/^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'"'"'`)}'`);
  for (const [path, name] of files) {
    if (path.endsWith(`/${name}`)) continue;
    const python = `'${name.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
    text = text.replaceAll(`'${path}'`, text.startsWith("placet ") ? quoted(name) : python).replaceAll(path, text.startsWith("placet ") ? quoted(name) : name);
  }
  return text;
}

/** Paths and names of the files of a dataset, from the element that carries them. */
export const filesOf = (root) => (root.dataset.path.startsWith("[") ? JSON.parse(root.dataset.path) : [[root.dataset.path, root.dataset.name]]);

/** A text with a button that copies it. */
export function copyable(label, text) {
  const button = el("button", { type: "button", onclick: async () => {
    await navigator.clipboard.writeText(text);
    say(`${label} copied.`);
  } }, "Copy");
  return el("figure", { class: "code" }, el("figcaption", {}, label, " ", button), el("pre", { tabindex: "0" }, text));
}
