// The owner's page of a poll.
import { api, copyable, fill, say } from "./core.js";
import { follow } from "./live.js";

const root = document.getElementById("poll");
const id = root.dataset.id;
const toggle = document.getElementById("toggle");
let open = root.dataset.open === "1";

const show = () => { toggle.textContent = open ? "Close the poll" : "Open it again"; };
toggle.addEventListener("click", async () => {
  ({ open } = await api("PUT", `/api/polls/${id}/open`, { open: !open }));
  show();
  say(open ? "The poll is open." : "The poll is closed.");
});
document.getElementById("dataset").addEventListener("click", async () => {
  try {
    const data = await api("POST", `/api/polls/${id}/dataset`);
    location.href = `/board/${data.id}`;
  } catch (error) {
    say(error.message, "error");
  }
});
const link = document.getElementById("link");
fill(link, copyable("Link for voters", link.dataset.link));
show();
follow(document.getElementById("live"), root.dataset.results, { owner: true, told: (about) => { open = Boolean(about.open); show(); } }); // it may close by itself
