// Uploads: by choice or by drop, one by one, each with its progress; then the page of the file, or of all as one.
import { api, el, fill, say } from "./core.js";

const drop = document.getElementById("drop");
const list = document.getElementById("uploads");
const input = document.getElementById("files");

async function upload(files) {
  const brought = [];
  for (const file of files) {
    const line = el("li", {}, `${file.name} … `);
    list.append(line);
    try {
      const data = await api("POST", "/api/data", file, { "X-Name": encodeURIComponent(file.name), "Content-Type": "application/octet-stream" });
      fill(line, el("a", { href: `/data/${data.id}` }, data.name), ` ${data.size.toLocaleString("en")} bytes`);
      brought.push(data.id);
    } catch (error) {
      fill(line, el("strong", {}, file.name), " ", el("span", { class: "bad" }, error.message));
      say(`${file.name}: ${error.message}`, "error");
    }
  }
  if (files.length === 1 && brought.length) location.href = `/data/${brought[0]}`;
  if (brought.length > 1) {
    const button = el("button", { type: "button", class: "primary", onclick: () => join(brought) }, `Open these ${brought.length} files as one dataset`);
    list.append(el("li", { class: "actions" }, button, el("a", { class: "button", href: "/" }, "Keep them apart")));
    button.focus();
  }
}

/** Open several datasets as one. */
async function join(datasets) {
  try {
    location.href = `/data/${(await api("POST", "/api/data/joined", { datasets })).id}`;
  } catch (error) {
    say(error.message, "error");
  }
}

const picks = [...document.querySelectorAll("[data-pick]")];
const picked = () => picks.filter((box) => box.checked && box.isConnected).map((box) => box.dataset.pick);
const joinButton = document.getElementById("join");
const jointButton = document.getElementById("joint");
const countPicked = () => { for (const button of [joinButton, jointButton]) if (button) button.disabled = picked().length < 2; };
for (const box of picks) box.addEventListener("change", countPicked);
joinButton?.addEventListener("click", () => join(picked()));
jointButton?.addEventListener("click", () => { location.href = `/sources?${new URLSearchParams(picked().map((key) => ["data", key]))}`; });
countPicked();

input.addEventListener("change", () => upload([...input.files]));
for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => { event.preventDefault(); upload([...event.dataTransfer.files]); });

for (const button of document.querySelectorAll("[data-remove]")) {
  button.addEventListener("click", async () => {
    await api("DELETE", `/api/data/${button.dataset.remove}`);
    button.closest("li").remove();
    countPicked();
    say("Removed.");
  });
}
