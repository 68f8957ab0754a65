// A form for a new poll.
import { api, el, errorBox, fill } from "./core.js";

const place = (name) => document.getElementById(name);
const images = [];

function showKind() {
  const kind = place("kind").value;
  for (const node of document.querySelectorAll("[data-for]")) node.hidden = node.dataset.for !== kind;
}

place("kind").addEventListener("change", showKind);
showKind();

place("images").addEventListener("change", async (event) => {
  for (const file of event.target.files) {
    try {
      const { image } = await api("POST", "/api/images", file, { "Content-Type": "application/octet-stream" });
      const name = el("input", { type: "text", value: file.name.replace(/\.\w+$/, ""), "aria-label": `Name of ${file.name}` });
      images.push({ image, name });
      place("image-list").append(el("li", {}, el("img", { src: URL.createObjectURL(file), alt: "" }), name));
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
      title: place("title").value, items: [...texts, ...pictures], kind: place("kind").value, ties: place("ties").checked, skip: place("skip").checked,
      again: place("again").value, results: place("results").value, goal: place("goal").value, k: number("k"), level: number("level"), most: number("most"),
    });
    location.href = `/polls/${id}`;
  } catch (error) {
    fill(place("new-error"), errorBox(error.message));
  }
});
