// What happens on the board, in two numbers above it: how many run, how many wait for an answer.
const WORDS = {
  running: (count) => `${count} running`,
  waiting: (count) => `${count} ${count === 1 ? "waits" : "wait"} for an answer`,
};
const board = document.getElementById("board");
let planned = 0;

function write() {
  planned = 0;
  for (const place of document.querySelectorAll("[data-sum]")) {
    const count = board.querySelectorAll(`.card--${place.dataset.sum}[data-status="running"]`).length;
    place.hidden = count === 0;
    place.querySelector("[data-sum-words]").textContent = WORDS[place.dataset.sum](count);
  }
}

new MutationObserver(() => { planned ||= requestAnimationFrame(write); }).observe(board, { childList: true, subtree: true });
write();
