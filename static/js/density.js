// Roomy or dense cards: at once on this page, and remembered with the person.
import { post } from "./http.js";

const root = document.documentElement;
const buttons = document.querySelectorAll("[data-density]");

function show() {
  const now = root.classList.contains("compact") ? "compact" : "";
  buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.density === now)));
}

buttons.forEach((button) => button.addEventListener("click", () => {
  root.classList.toggle("compact", button.dataset.density === "compact");
  show();
  post("/me/appearance/", { theme: root.dataset.theme ?? "", density: button.dataset.density });
}));
show();
