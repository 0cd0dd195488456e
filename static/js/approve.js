// Answering a question from the banner, a card or the log. Whoever is first wins; the others are told who it was.
import { announce, post, toast } from "./http.js";

async function answer(button) {
  const { approval, answer: verdict } = button.dataset;
  const buttons = document.querySelectorAll(`[data-approval="${approval}"]`);
  if (button.getAttribute("aria-disabled")) return;
  if (["stale", "signed-out", "revoked"].includes(document.documentElement.dataset.live)) {
    toast("This board is not live, so an answer may come too late. Wait until it is, or reload.", "error");
    return;
  }
  buttons.forEach((other) => other.setAttribute("aria-disabled", "true"));
  const { ok, status, body } = await post(`/approvals/${approval}/decide/`, { verdict, scope: "once" });
  if (ok) {
    const words = verdict === "approve" ? "Approved once. The agent goes on." : "Denied. The agent is told.";
    toast(words);
    announce(words);
    return;
  }
  toast(body.message, status === 409 ? "info" : "error");
  announce(body.message);
  if (status !== 409) buttons.forEach((other) => other.removeAttribute("aria-disabled"));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-answer]");
  if (!button) return;
  event.preventDefault();
  answer(button);
});

// A and D answer only while the question itself has the focus, so that no stray key approves anything.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const row = event.target.closest?.(".ask-row");
  const verdict = { a: "approve", d: "deny" }[event.key];
  const button = row && verdict && row.querySelector(`[data-answer="${verdict}"]`);
  if (!button || getComputedStyle(button).display === "none") return;
  event.preventDefault();
  answer(button);
});

// Someone else was first: say who, since the question disappears under the reader's eyes.
document.addEventListener("pullcord:happened", (event) => {
  const { text, user } = event.detail;
  const isMine = String(user ?? "") === document.documentElement.dataset.me;
  if (!isMine && /^.+ (approved|denied) a question /.test(text)) toast(text);
});

// That oneself is looking is no news.
function hideOwn() {
  const { me } = document.documentElement.dataset;
  for (const mark of document.querySelectorAll(`[data-who="${me}"]`)) mark.hidden = true;
}
hideOwn();
for (const name of ["cord", "put", "lanes"]) document.addEventListener(`pullcord:${name}`, hideOwn);

// That somebody looks at a question is over by itself, also when nothing else happens on the board.
setInterval(() => {
  for (const mark of document.querySelectorAll("[data-until]")) {
    if (Date.parse(mark.dataset.until) < Date.now()) mark.remove();
  }
}, 5000);
