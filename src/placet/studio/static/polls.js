// A form for a new poll.
import { api, el, errorBox, fill, say } from "./core.js";

const place = (name) => document.getElementById(name);
const images = [];

function showKind() {
  const kind = place("kind").value;
  for (const node of document.querySelectorAll("[data-for]")) node.hidden = !node.dataset.for.split(" ").includes(kind);
}

place("kind").addEventListener("change", showKind);
showKind();

place("images").addEventListener("change", async (event) => {
  const files = [...event.target.files];
  event.target.value = ""; // so that one that was taken back can be chosen again
  for (const file of files) {
    try {
      const { image } = await api("POST", "/api/images", file, { "Content-Type": "application/octet-stream" });
      const name = el("input", { type: "text", value: file.name.replace(/\.\w+$/, ""), "aria-label": `Name of ${file.name}` });
      const one = { image, name };
      images.push(one);
      const line = el("li", {}, el("img", { src: URL.createObjectURL(file), alt: "" }), name, el("button", { type: "button", class: "quiet", "aria-label": `Take back ${file.name}`, onclick: () => {
        images.splice(images.indexOf(one), 1);
        const near = line.nextElementSibling ?? line.previousElementSibling;
        line.remove();
        (near?.querySelector("button") ?? place("images")).focus();
        say(`${file.name} is taken back.`);
        api("DELETE", `/api/images/${image}`).catch((error) => fill(place("new-error"), errorBox(`${file.name}: ${error.message}`)));
      } }, "Take back"));
      place("image-list").append(line);
    } catch (error) {
      fill(place("new-error"), errorBox(`${file.name}: ${error.message}`));
    }
  }
});

place("new").addEventListener("submit", async (event) => {
  event.preventDefault();
  const texts = place("items").value.split("\n").map((line) => line.trim()).filter(Boolean).map((text) => ({ text }));
  const pictures = images.map(({ image, name }) => ({ text: name.value, image }));
  const number = (name) => Number(place(name).value);
  try {
    const { id } = await api("POST", "/api/polls", {
      title: place("title").value, items: [...texts, ...pictures], kind: place("kind").value, ties: place("ties").checked, ...(place("kind").value === "sets" ? { shown: number("shown") } : {}), skip: place("skip").checked,
      again: place("again").value, results: place("results").value, goal: place("goal").value, k: number("k"), level: number("level"), most: number("most"), stop: place("stop").checked,
    });
    location.href = `/polls/${id}`;
  } catch (error) {
    fill(place("new-error"), errorBox(error.message));
  }
});
