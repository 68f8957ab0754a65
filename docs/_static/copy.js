// A button on every block of code; of a session with prompts, only what was typed is copied.
function typed(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  const prompt = /^(>>> |\.\.\. ?|\$ )/;
  const said = lines.filter((line) => prompt.test(line));
  return (said.length ? said.map((line) => line.replace(prompt, "")) : lines).join("\n") + "\n";
}

document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(typed(block.querySelector("pre").textContent));
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
});
