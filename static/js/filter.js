// Hides the cards that do not hold the words of the filter box; the words stand in the address as ?q=.
const box = document.querySelector("[data-filter]");
const count = document.querySelector("[data-filter-count]");

function wanted() {
  return box.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
}

function fits(card, words) {
  const text = `${card.dataset.ref} ${card.querySelector(".card__title").textContent}`.toLowerCase();
  const labels = [...card.querySelectorAll(".label")].map((label) => label.textContent.toLowerCase());
  return words.every((word) => text.includes(word) || labels.some((label) => label.includes(word)));
}

function filterAll() {
  const words = wanted();
  let shown = 0;
  const cards = document.querySelectorAll(".card[data-ref]");
  for (const card of cards) {
    card.hidden = words.length > 0 && !fits(card, words);
    if (!card.hidden) shown += 1;
  }
  count.textContent = words.length ? `${shown} of ${cards.length} cards` : "";
}

function write() {
  const url = new URL(location.href);
  if (box.value.trim()) url.searchParams.set("q", box.value.trim());
  else url.searchParams.delete("q");
  history.replaceState(history.state, "", url);
}

box.addEventListener("input", () => { filterAll(); write(); });
box.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (box.value) { box.value = ""; filterAll(); write(); } else box.blur();
  } else if (event.key === "Enter" || event.key === "ArrowDown") {
    event.preventDefault();
    document.querySelector(".card:not([hidden]) .card__title a")?.focus();
  }
});
document.addEventListener("pullcord:put", (event) => {
  const words = wanted();
  if (words.length) event.detail.card.hidden = !fits(event.detail.card, words);
});
for (const name of ["lanes", "more"]) document.addEventListener(`pullcord:${name}`, filterAll);
box.value = new URLSearchParams(location.search).get("q") ?? "";
if (box.value) filterAll();
