// Voting: two at a time, the best and the worst of a few, or a ballot with tiers; by mouse, touch or keyboard.
import { api, el, errorBox, fill, say } from "./core.js";
import { follow } from "./live.js";

const root = document.getElementById("vote");
const poll = JSON.parse(root.dataset.about);
const base = `/p/${poll.id}`;
const nonce = () => (crypto.randomUUID ? crypto.randomUUID() : [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join(""));

const face = (k) => [poll.items[k].image ? el("img", { src: poll.items[k].image, alt: "", draggable: "false" }) : null, el("span", {}, poll.items[k].text)];

/** Send an answer; a lost connection is tried again with the same nonce, so that it counts once. */
async function send(answer) {
  const body = { ...answer, nonce: nonce() };
  for (let attempt = 0; ; attempt++) {
    try {
      return await api("POST", `${base}/vote`, body);
    } catch (error) {
      if (!(error instanceof TypeError) || attempt >= 4) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** attempt));
    }
  }
}

function finished(words) {
  fill(root, el("p", { class: "lead done", role: "status" }, words));
}

// Two at a time

let asked = null;
let busy = false;

function showPair(next) {
  asked = next.done ? null : next;
  if (next.done) return finished(next.done);
  const choice = (word, k, key) => el("button", { type: "button", class: "choice", onclick: () => answerPair(word), "aria-keyshortcuts": key }, face(k));
  fill(root, el("div", { class: "duel" }, choice("a", next.first, "ArrowLeft"), choice("b", next.second, "ArrowRight")),
    el("p", { class: "actions others" }, poll.settings.ties ? el("button", { type: "button", onclick: () => answerPair("tie"), "aria-keyshortcuts": "ArrowDown" }, "They tie") : null,
      poll.settings.skip ? el("button", { type: "button", class: "quiet", onclick: () => answerPair("skip"), "aria-keyshortcuts": "s" }, "Cannot say") : null),
    el("p", { class: "soft" }, `Keys: ← first, → second${poll.settings.ties ? ", ↓ tie" : ""}${poll.settings.skip ? ", s cannot say" : ""}. ${next.answered ? `${next.answered} answered.` : ""}`));
}

const answerPair = (word) => asked && answer({ first: asked.first, second: asked.second, answer: word }, showPair);

/** Send an answer, and show the next question. */
async function answer(body, show) {
  if (busy || !asked) return;
  busy = true;
  root.classList.add("busy");
  try {
    const done = await send(body);
    showResults();
    show(done.next);
    root.querySelector("button:not(:disabled), input")?.focus({ preventScroll: true });
    say(done.state === "replaced" ? "Your earlier answer is replaced." : "Kept.");
  } catch (error) {
    say(error.message, "error");
    if (/answered this already/.test(error.message)) show(await api("GET", `${base}/next`));
  } finally {
    busy = false;
    root.classList.remove("busy");
  }
}

function pairKeys(event) {
  if (event.target.matches("input, textarea, select")) return;
  const word = { ArrowLeft: "a", ArrowRight: "b", ArrowDown: poll.settings.ties && "tie", s: poll.settings.skip && "skip" }[event.key];
  if (!word || !asked) return;
  event.preventDefault();
  answerPair(word);
}

// The best and the worst of a few

const chosen = { best: null, worst: null };

function showSet(next) {
  asked = next.done ? null : next;
  Object.assign(chosen, { best: null, worst: null });
  if (next.done) return finished(next.done);
  const pick = (which, k) => el("td", {}, el("label", { class: "pick" }, el("input", { type: "radio", name: which, value: k, "aria-label": `${which === "best" ? "Best" : "Worst"}: ${poll.items[k].text}`, onchange: () => choose(which, k) })));
  fill(root, el("table", { class: "set" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Best"), el("td", {}), el("th", { scope: "col" }, "Worst"))),
    el("tbody", {}, next.shown.map((k) => el("tr", {}, pick("best", k), el("th", { scope: "row" }, face(k)), pick("worst", k))))),
  el("p", { class: "actions others" }, el("button", { type: "button", class: "primary", id: "send", disabled: true, onclick: () => answerSet(chosen) }, "Send"),
    poll.settings.skip ? el("button", { type: "button", class: "quiet", onclick: () => answerSet({ best: null, worst: null }) }, "Cannot say") : null),
  el("p", { class: "soft" }, `Question ${next.answered + 1} of ${next.most}. Keys: a number for the best, then a number for the worst, Enter sends.`));
}

/** Choose an item as the best or the worst; it cannot be both. */
function choose(which, k) {
  const other = which === "best" ? "worst" : "best";
  chosen[which] = k;
  if (chosen[other] === k) chosen[other] = null;
  for (const input of root.querySelectorAll("input[type=radio]")) input.checked = chosen[input.name] === Number(input.value);
  document.getElementById("send").disabled = chosen.best === null || chosen.worst === null;
}

const answerSet = ({ best, worst }) => answer({ shown: asked.shown, best, worst }, showSet);

function setKeys(event) {
  if (!asked || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Enter" && !event.target.matches("button") && chosen.best !== null && chosen.worst !== null) answerSet(chosen);
  else if (/^[1-9]$/.test(event.key) && Number(event.key) <= asked.shown.length) choose(chosen.best === null || chosen.worst !== null ? restart() : "worst", asked.shown[Number(event.key) - 1]);
  else return;
  event.preventDefault();
}

/** Begin to choose anew: the next number is the best. */
function restart() {
  chosen.worst = null;
  return "best";
}

// Ballots

let tiers = [];
let out = [];

function showBallot(focus) {
  const row = (k, t) => el("li", { class: "ranked", "data-item": k }, el("span", { class: "grip", "aria-hidden": "true", onpointerdown: (event) => drag(event, k) }, "⠿"),
    el("span", { class: "face" }, face(k)),
    el("span", { class: "moves" }, t === null ? button("Rank", k, () => place(k, tiers.length, true))
      : [button("Up", k, () => up(k, t), t === 0 && tiers[t].length === 1), button("Down", k, () => down(k, t), t === tiers.length - 1 && tiers[t].length === 1),
        poll.settings.ties ? (tiers[t].length > 1 ? button("Untie", k, () => place(k, t + 1, true)) : button("Tie", k, () => place(k, t - 1, false), t === 0)) : null, button("Leave out", k, () => place(k, null))]));
  fill(root, el("p", { class: "soft" }, `Best at the top. Drag by the handle, or use the buttons.${poll.settings.ties ? " Items in one box tie." : ""} What is left out is not compared.`),
    el("p", { class: "soft" }, `Keys, with a button of an item focused: Enter ranks it and goes to the next, ↑ and ↓ move it, 1 to 9 put it at a place${poll.settings.ties ? ", t ties it with the one above" : ""}, Delete leaves it out.`),
    el("ol", { class: "tiers", "aria-label": "Your ranking" }, tiers.flatMap((tier, t) => [el("li", { class: "gap", "data-gap": t, "aria-hidden": "true" }),
      el("li", { class: "tier-box", "data-tier": t }, el("span", { class: "place", "aria-hidden": "true" }, String(t + 1)), el("ul", { class: "plain", "aria-label": `Place ${t + 1}` }, tier.map((k) => row(k, t))))]),
    el("li", { class: "gap", "data-gap": tiers.length, "aria-hidden": "true" })),
    el("section", { class: "out", "data-out": "1", "aria-label": "Left out" }, el("p", { class: "soft" }, out.length ? (tiers.length ? "Left out" : "Not ranked yet") : "Nothing is left out"), el("ul", { class: "plain" }, out.map((k) => row(k, null)))),
    el("p", {}, el("button", { type: "button", class: "primary", id: "cast", disabled: tiers.length === 0, onclick: cast }, poll.mine ? "Send the new ballot" : "Send the ballot")));
  if (focus) root.querySelector(`[data-move="${CSS.escape(focus)}"]:not(:disabled)`)?.focus();
}

function button(words, k, act, disabled = false) {
  const key = `${k} ${words}`;
  return el("button", { type: "button", disabled, "data-move": key, "aria-label": `${words}: ${poll.items[k].text}`, onclick: () => { act(); after(k, key); }, onkeydown: (event) => {
    if (!byKey(event.key, k, tiers.findIndex((tier) => tier.includes(k)))) return;
    event.preventDefault();
    after(k, key);
  } }, words);
}

/** Do what a key says to item k, which is in tier t (-1: left out); whether it said anything. */
function byKey(key, k, t) {
  if (key === "ArrowUp") t >= 0 ? up(k, t) : place(k, tiers.length, true);
  else if (key === "ArrowDown" && t >= 0) down(k, t);
  else if (key === "t" && poll.settings.ties && t >= 0) tiers[t].length > 1 ? place(k, t + 1, true) : t > 0 && place(k, t - 1, false);
  else if ((key === "Delete" || key === "Backspace") && t >= 0) place(k, null);
  else if (/^[1-9]$/.test(key)) putAt(k, Number(key) - 1);
  else return false;
  return true;
}

/** Put an item at a place of its own, counted without it. */
function putAt(k, at) {
  place(k, null);
  place(k, Math.min(at, tiers.length), true);
}

function after(k, key) {
  showBallot(key);
  const t = tiers.findIndex((tier) => tier.includes(k));
  say(`${poll.items[k].text}: ${t < 0 ? "left out" : `place ${t + 1} of ${tiers.length}${tiers[t].length > 1 ? ", tied" : ""}`}`);
  if (key === `${k} Rank`) return void (root.querySelector('.out [data-move$=" Rank"]') ?? document.getElementById("cast")).focus(); // the next one to rank, or the end
  if (document.activeElement?.dataset?.move !== key) root.querySelector(`[data-move^="${k} "]:not(:disabled)`)?.focus();
}

/** Put an item into tier t, or between tiers as one of its own; null leaves it out. */
function place(k, t, alone) {
  const target = t === null ? null : alone ? { before: tiers[t] ?? null } : { into: tiers[t] };
  tiers = tiers.map((tier) => tier);
  for (const tier of tiers) { const at = tier.indexOf(k); if (at >= 0) tier.splice(at, 1); }
  out = out.filter((one) => one !== k);
  if (target === null) out.push(k);
  else if (target.into) target.into.push(k);
  else { const at = target.before ? tiers.indexOf(target.before) : tiers.length; tiers.splice(at, 0, [k]); }
  tiers = tiers.filter((tier) => tier.length);
}

const up = (k, t) => place(k, tiers[t].length > 1 ? t : Math.max(0, t - 1), true);
const down = (k, t) => place(k, tiers[t].length > 1 ? t + 1 : Math.min(tiers.length, t + 2), true);

function drag(event, k) {
  event.preventDefault();
  const card = event.target.closest("[data-item]");
  const ghost = card.cloneNode(true);
  ghost.classList.add("ghost");
  ghost.style.width = `${card.offsetWidth}px`;
  document.body.append(ghost);
  card.classList.add("lifted");
  event.target.setPointerCapture?.(event.pointerId);
  let target = null;
  const move = (now) => {
    ghost.style.left = `${now.clientX - 20}px`;
    ghost.style.top = `${now.clientY - 20}px`;
    target?.classList.remove("over");
    target = document.elementFromPoint(now.clientX, now.clientY)?.closest("[data-gap], [data-tier], [data-out]") ?? null;
    target?.classList.add("over");
    if (now.clientY < 60) window.scrollBy(0, -12);
    if (now.clientY > window.innerHeight - 60) window.scrollBy(0, 12);
  };
  const end = (now) => {
    event.target.removeEventListener("pointermove", move);
    ghost.remove();
    if (now.type === "pointerup" && target) {
      if (target.dataset.gap) place(k, Number(target.dataset.gap), true);
      else if (target.dataset.tier && poll.settings.ties) place(k, Number(target.dataset.tier), false);
      else if (target.dataset.tier) place(k, Number(target.dataset.tier), true);
      else if (target.dataset.out) place(k, null);
    }
    after(k, `${k} Up`);
  };
  event.target.addEventListener("pointermove", move);
  event.target.addEventListener("pointerup", end, { once: true });
  event.target.addEventListener("pointercancel", end, { once: true });
  move(event);
}

async function cast() {
  try {
    const done = await send({ tiers });
    poll.mine = tiers;
    showResults();
    finished(done.state === "replaced" ? "Your new ballot replaces the earlier one. Thank you!" : "Your ballot is kept. Thank you!");
    if (poll.settings.again !== "refuse") root.append(el("p", {}, el("button", { type: "button", onclick: () => showBallot() }, "Change it")));
  } catch (error) {
    fill(root, errorBox(error.message), el("button", { type: "button", onclick: () => showBallot() }, "Back to the ballot"));
  }
}

// Begin

let following = false;

/** Follow the results, once they may be seen. */
function showResults() {
  if (!following && poll.settings.results !== "owner") follow(document.getElementById("live"), `${base}/results`);
  following = true;
}

if (!poll.open) finished("This poll is closed.");
else if (poll.kind === "ballots" && poll.mine && poll.settings.again === "refuse") finished("You have voted. This poll counts one ballot of each voter.");
else if (poll.kind !== "ballots") {
  const show = poll.kind === "pairs" ? showPair : showSet;
  document.addEventListener("keydown", poll.kind === "pairs" ? pairKeys : setKeys);
  try {
    show(await api("GET", `${base}/next`));
  } catch (error) {
    fill(root, errorBox(error.message));
  }
} else {
  tiers = poll.mine ? poll.mine.map((tier) => [...tier]) : [];
  const there = new Set(tiers.flat());
  out = poll.order.filter((k) => !there.has(k));
  showBallot();
}
if (poll.settings.results === "voters" || (poll.settings.results === "after" && (poll.voted || !poll.open))) showResults();
