// Uploads: by choice or by drop, one by one, each with its progress; then the page of the file.
import { api, el, fill, say } from "./core.js";

const drop = document.getElementById("drop");
const list = document.getElementById("uploads");
const input = document.getElementById("files");

async function upload(files) {
  let last = null;
  for (const file of files) {
    const line = el("li", {}, `${file.name} … `);
    list.append(line);
    try {
      const data = await api("POST", "/api/data", file, { "X-Name": encodeURIComponent(file.name), "Content-Type": "application/octet-stream" });
      fill(line, el("a", { href: `/data/${data.id}` }, data.name), ` ${data.size.toLocaleString("en")} bytes`);
      last = data;
    } catch (error) {
      fill(line, el("strong", {}, file.name), " ", el("span", { class: "bad" }, error.message));
      say(`${file.name}: ${error.message}`, "error");
    }
  }
  if (files.length === 1 && last) location.href = `/data/${last.id}`;
}

input.addEventListener("change", () => upload([...input.files]));
for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => { event.preventDefault(); upload([...event.dataTransfer.files]); });

for (const button of document.querySelectorAll("[data-remove]")) {
  button.addEventListener("click", async () => {
    await api("DELETE", `/api/data/${button.dataset.remove}`);
    button.closest("li").remove();
    say("Removed.");
  });
}
