// The inbox and the question in full: keys, and what happens when somebody else answers first.
import { csrf } from "./http.js";

let page = document.querySelector("[data-question-page]");

function typing(target) {
  return target.matches("input:not([type=radio]), textarea, select, [contenteditable]");
}

function step(by) {
  const links = [...document.querySelectorAll("[data-questions] [data-open]")];
  if (!links.length) return;
  const at = links.findIndex((link) => link.closest("[data-question]").contains(document.activeElement));
  const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by));
  links[next].focus();
  links[next].closest("[data-question]").scrollIntoView({ block: "nearest" });
}

function press(answer) {
  page?.querySelector(`button[name=answer][value=${answer}]`)?.click();
}

const INBOX = {
  j: () => step(1),
  k: () => step(-1),
  o: () => document.activeElement.closest("[data-question]")?.querySelector("[data-open]").click(),
};
// Answers only while the question has the focus: a stray key elsewhere decides nothing.
const QUESTION = {
  j: () => document.querySelector("[data-next]")?.click(),
  k: () => document.querySelector("[data-previous]")?.click(),
  e: () => page.querySelector("[data-edit]")?.focus(),
  d: () => page.querySelector("#comment")?.focus(),
  q: () => page.querySelector("#comment")?.focus(),
};
const ANSWERS = { a: () => press("once"), r: () => press("run") };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Enter" && event.target.matches("input[type=radio]")) {
    event.preventDefault(); // Enter on a reason must not deny
    return;
  }
  if (typing(event.target)) return;
  const inside = page?.contains(event.target);
  const keys = page ? { ...QUESTION, ...(inside ? ANSWERS : {}) } : INBOX;
  const act = keys[event.key.toLowerCase()];
  if (!act) return;
  event.preventDefault();
  act();
});

// Somebody else answered this one, or approved it as the first of two: show who, instead of buttons that would come
// too late. That somebody else looks is shown without touching what is being typed.
if (page?.dataset.open === "1") {
  document.addEventListener("pullcord:questions", async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok || !page.isConnected) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = fresh.querySelector("[data-question-page]");
    if (!now) return;
    if (now.dataset.state === page.dataset.state) {
      showLooker(now);
      return;
    }
    const written = page.querySelector("#comment")?.value;
    const next = document.importNode(now, true);
    page.replaceWith(next);
    page = next;
    if (written && page.querySelector("#comment")) page.querySelector("#comment").value = written;
    const words = now.querySelector(".note")?.textContent.trim().replace(/\s+/g, " ");
    document.dispatchEvent(new CustomEvent("pullcord:toast", { detail: { text: words || "Somebody answered." } }));
  });
}

function showLooker(now) {
  page.querySelector("[data-looker]")?.remove();
  const looker = now.querySelector("[data-looker]");
  if (looker) page.querySelector(".ask__body").prepend(document.importNode(looker, true));
}

// While this page is seen, the others are told who looks at the question.
const LOOK_SECONDS = 45;
if (page?.dataset.look) {
  const look = () => {
    if (document.hidden || !page.dataset.look) return;
    fetch(page.dataset.look, { method: "POST", headers: { "X-CSRFToken": csrf() } }).catch(() => {});
  };
  look();
  setInterval(look, LOOK_SECONDS * 1000);
  document.addEventListener("visibilitychange", look);
}

// A filter counts as soon as it is chosen.
document.addEventListener("change", (event) => event.target.closest("[data-filters]")?.requestSubmit());
