// Long columns: brings the next cards of a column when they are asked for.
import { tell, toast } from "./http.js";

async function load(button) {
  const lane = button.closest(".lane");
  const list = lane.querySelector("[data-cards]");
  const last = [...list.querySelectorAll(".card")].at(-1);
  if (button.getAttribute("aria-disabled")) return;
  button.setAttribute("aria-disabled", "true");
  try {
    const after = last?.dataset.rank ?? "";
    const answer = await fetch(`${button.dataset.more}?after=${encodeURIComponent(after)}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const page = document.createElement("template");
    page.innerHTML = await answer.text();
    const fresh = [...page.content.children].filter((card) => !document.getElementById(card.id));
    list.append(...fresh);
    fresh[0]?.querySelector(".card__title a")?.focus({ preventScroll: true });
    const end = answer.headers.get("X-End");
    list.dataset.end = end;
    if (!end) button.parentElement.remove();
    tell("more", { lane });
  } catch {
    toast("The cards could not be read. Try again.", "error");
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-more]");
  if (button) load(button);
});
