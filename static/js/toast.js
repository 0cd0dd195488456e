// Messages at the edge of the screen. Others say: document.dispatchEvent(new CustomEvent("pullcord:toast",
// { detail: { text, level, action: { text, run } } })), where level and action may be left out.
const STAYS = 6000; // milliseconds; errors stay until they are closed

function place(toast) {
  if (toast.dataset.placed) return;
  toast.dataset.placed = "1";
  if (toast.classList.contains("toast--bad")) return;
  let timer = setTimeout(() => toast.remove(), STAYS);
  // Nobody loses a message that they are reading.
  toast.addEventListener("pointerenter", () => clearTimeout(timer));
  toast.addEventListener("focusin", () => clearTimeout(timer));
  toast.addEventListener("pointerleave", () => { timer = setTimeout(() => toast.remove(), STAYS); });
}

function show({ text, level = "info", action = null }) {
  const box = document.getElementById("toasts");
  if (!box) return;
  const toast = document.createElement("div");
  toast.className = level === "error" ? "toast toast--bad" : "toast";
  toast.dataset.toast = "";
  const words = document.createElement("span");
  words.className = "toast__text";
  words.textContent = text;
  toast.append(words);
  if (action) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = action.text;
    button.addEventListener("click", () => { toast.remove(); action.run(); });
    toast.append(button);
  }
  const close = document.createElement("button");
  close.type = "button";
  close.dataset.toastClose = "";
  close.className = "toast__close";
  close.setAttribute("aria-label", "Close this message");
  close.textContent = "×";
  toast.append(close);
  box.append(toast);
  while (box.children.length > 4) box.firstElementChild.remove();
}

document.addEventListener("pullcord:toast", (event) => show(event.detail));
document.addEventListener("click", (event) => {
  event.target.closest?.("[data-toast-close]")?.closest("[data-toast]")?.remove();
});
const box = document.getElementById("toasts");
if (box) {
  box.querySelectorAll("[data-toast]").forEach(place);
  new MutationObserver(() => box.querySelectorAll("[data-toast]").forEach(place)).observe(box, { childList: true });
}
