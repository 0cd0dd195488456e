// The board on the keyboard. The keys are listed in templates/boards/_keys.html.
import { post, toast } from "./http.js";
import { cardCalled, cardsIn, laneOf, lanes, mayChange } from "./lanes.js";
import { cardInFocus, focusCard, openMoveMenu } from "./menu.js";
import { moveTo } from "./move.js";
import { closeDrawer, openDrawer, openedRef } from "./drawer.js";

const ARROWS = {
  ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", h: "left", l: "right", k: "up", j: "down",
};
const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]") !== null;
const help = document.querySelector("[data-keys]");

function nextLane(lane, direction, isFit) {
  const all = lanes();
  const step = direction === "left" ? -1 : 1;
  for (let place = all.indexOf(lane) + step; all[place]; place += step) if (isFit(all[place])) return all[place];
  return null;
}

function go(card, direction) {
  const cards = cardsIn(laneOf(card));
  const place = cards.indexOf(card);
  if (direction === "up" || direction === "down") {
    focusCard(cards[place + (direction === "up" ? -1 : 1)]);
    return;
  }
  const lane = nextLane(laneOf(card), direction, (other) => cardsIn(other).length > 0);
  if (!lane) return;
  const top = card.getBoundingClientRect().top;
  const distance = (other) => Math.abs(other.getBoundingClientRect().top - top);
  focusCard(cardsIn(lane).reduce((best, other) => (distance(other) < distance(best) ? other : best)));
}

function carry(card, direction) {
  const lane = laneOf(card);
  const cards = cardsIn(lane);
  const place = cards.indexOf(card);
  if (direction === "up" && place > 0) moveTo(card, lane, cards[place - 1]);
  else if (direction === "down" && place < cards.length - 1) moveTo(card, lane, cards[place + 1].nextElementSibling);
  else if (direction === "left" || direction === "right") {
    const other = nextLane(lane, direction, () => true);
    if (other) moveTo(card, other, cardsIn(other)[0] ?? null);
  }
}

async function queue(card) {
  const { ok, body } = await post(`/cards/${card.dataset.ref}/queue/`, {});
  toast(body.message, ok ? "info" : "error");
}

function onArrow(event, direction) {
  const card = cardInFocus();
  if (event.altKey) {
    if (!card || !mayChange() || card.hasAttribute("aria-busy")) return;
    carry(card, direction);
  } else if (card) go(card, direction);
  else if (event.target === document.body || event.target.matches("main, .lane__list")) {
    if (event.target.matches(".lane__list") && event.key.startsWith("Arrow")) {
      focusCard(cardsIn(laneOf(event.target))[0]);
    } else focusCard(document.querySelector(".card:not([hidden])"));
  } else return;
  event.preventDefault();
}

const KEYS = {
  c: () => mayChange() && document.querySelector("[data-new-card]")?.click(),
  e: (ref) => ref && mayChange() && openDrawer(`/cards/${ref}/edit/`),
  m: (ref) => {
    if (!ref) return;
    const card = cardInFocus();
    openMoveMenu(ref, card ? card.querySelector(".card__title a") : document.querySelector("[data-drawer] .drawer__bar .btn"));
  },
  q: (ref) => { const card = ref && cardCalled(ref); if (card && mayChange()) queue(card); },
  w: () => document.querySelector(".ask-row")?.focus(),
  "/": () => document.querySelector("[data-filter]")?.focus(),
  "?": () => help.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") {
    if (event.target.matches?.("[data-filter]")) return;
    if (document.querySelector("details[data-menu][open]")) {
      document.querySelector("details[data-menu][open]").removeAttribute("open");
    } else if (isTyping(event.target) && event.target.closest("[data-drawer]")) event.target.blur();
    else closeDrawer();
    return;
  }
  if (isTyping(event.target)) return;
  const direction = ARROWS[event.key];
  if (direction && !event.target.closest?.("[data-drawer], .menu, .rail, .tabs")) { onArrow(event, direction); return; }
  if (event.altKey) return;
  const run = KEYS[event.key];
  if (!run) return;
  event.preventDefault();
  run(cardInFocus()?.dataset.ref ?? openedRef());
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-help]")) help.showModal();
  if (event.target.closest("[data-close-dialog]") || event.target === help) help.close();
});
