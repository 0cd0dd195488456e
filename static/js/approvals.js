// The inbox and the question in full: keys, and what happens when somebody else answers first.
const page = document.querySelector("[data-question-page]");

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

// Somebody else answered this one: show who, instead of buttons that would come too late.
if (page?.dataset.open === "1") {
  document.addEventListener("pullcord:questions", async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = fresh.querySelector("[data-question-page]");
    if (now?.dataset.open !== "0") return;
    page.replaceWith(document.importNode(now, true));
    const words = now.querySelector(".note")?.textContent.trim().replace(/\s+/g, " ");
    document.dispatchEvent(new CustomEvent("pullcord:toast", { detail: { text: words || "Somebody answered." } }));
  });
}
