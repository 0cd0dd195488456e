import { soon } from "./painting.js";

// What happens on the board, in two numbers above it: how many run, how many wait for an answer.
const WORDS = {
  running: (count) => `${count} running`,
  waiting: (count) => `${count} ${count === 1 ? "waits" : "wait"} for an answer`,
};
const board = document.getElementById("board");
let planned = false;

function write() {
  planned = false;
  for (const place of document.querySelectorAll("[data-sum]")) {
    const count = board.querySelectorAll(`.card--${place.dataset.sum}[data-status="running"]`).length;
    place.hidden = count === 0;
    place.querySelector("[data-sum-words]").textContent = WORDS[place.dataset.sum](count);
  }
}

function plan() {
  if (planned) return;
  planned = true;
  soon(write);
}

new MutationObserver(plan).observe(board, { childList: true, subtree: true });
write();
