// The menu "Move to …": what dragging does, without dragging. Also closes the small menus of the drawer.
import { post, toast } from "./http.js";
import { cardCalled, cardsIn, laneOf, lanes, linkIn, mayChange, takes } from "./lanes.js";
import { moveTo } from "./move.js";

let menu = null;

export function openMoveMenu(ref, anchor) {
  if (!mayChange()) return;
  closeMenu();
  const card = cardCalled(ref);
  menu = document.createElement("div");
  menu.className = "menu move-menu";
  menu.setAttribute("role", "menu");
  menu.setAttribute("aria-label", `Move ${ref} to`);
  const title = document.createElement("p");
  title.className = "move-menu__title";
  title.textContent = `Move ${ref} to`;
  menu.append(title);
  for (const lane of lanes()) menu.append(entry(lane, card, ref));
  if (card) menu.append(document.createElement("hr"), edge(card, "Top of its column", "first"), edge(card, "Bottom of its column", "last"));
  document.body.append(menu);
  menu.back = anchor;
  placeAt(anchor);
  menu.querySelector("[role=menuitem]:not([aria-disabled])")?.focus();
}

function entry(lane, card, ref) {
  const here = card && laneOf(card) === lane;
  const item = makeItem(lane.dataset.name, () => {
    if (card) moveTo(card, lane);
    else post(`/cards/${ref}/move/`, { column: lane.dataset.column }).then(({ ok, body }) => ok || toast(body.message, "error"));
  });
  const glyph = lane.querySelector(".lane__head .icon")?.cloneNode(true);
  if (glyph) item.prepend(glyph);
  if (here) { item.setAttribute("aria-disabled", "true"); item.append(note("here")); }
  else if (card && !takes(lane, card)) item.append(note("not now"));
  return item;
}

function edge(card, words, side) {
  return makeItem(words, () => {
    const others = cardsIn(laneOf(card)).filter((other) => other !== card);
    moveTo(card, laneOf(card), side === "first" ? others[0] ?? null : others.at(-1)?.nextElementSibling ?? null);
  });
}

function makeItem(words, run) {
  const item = document.createElement("button");
  item.type = "button";
  item.setAttribute("role", "menuitem");
  item.append(words);
  item.addEventListener("click", () => {
    if (item.getAttribute("aria-disabled")) return;
    closeMenu();
    run();
  });
  return item;
}

function note(words) {
  const small = document.createElement("span");
  small.className = "move-menu__note";
  small.textContent = words;
  return small;
}

function placeAt(anchor) {
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  menu.style.left = `${Math.max(8, Math.min(at.left + 12, innerWidth - width - 8))}px`;
  menu.style.top = `${Math.max(8, Math.min(at.bottom + 4, innerHeight - height - 8))}px`;
}

export function closeMenu() {
  if (!menu) return false;
  const back = menu.back;
  menu.remove();
  menu = null;
  (back?.isConnected ? back : null)?.focus({ preventScroll: true });
  return true;
}

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-move-menu]");
  if (opener) {
    const anchor = opener.closest("details")?.querySelector("summary") ?? opener;
    opener.closest("details")?.removeAttribute("open");
    openMoveMenu(opener.dataset.moveMenu, anchor);
    return;
  }
  if (menu && !menu.contains(event.target)) closeMenu();
  for (const details of document.querySelectorAll("details[data-menu][open]")) {
    if (!details.contains(event.target)) details.removeAttribute("open");
  }
});

document.addEventListener("keydown", (event) => {
  if (!menu) return;
  const items = [...menu.querySelectorAll("[role=menuitem]")];
  const place = items.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1, Tab: event.shiftKey ? -1 : 1 }[event.key];
  if (step) items.at((place + step + items.length) % items.length).focus();
  else if (event.key === "Home" || event.key === "End") items.at(event.key === "Home" ? 0 : -1).focus();
  else if (event.key === "Escape") closeMenu();
  else return;
  event.preventDefault();
  event.stopPropagation();
}, true);

export function cardInFocus() {
  const card = document.activeElement?.closest?.(".card");
  return card ?? null;
}

export function focusCard(card) {
  const link = card && linkIn(card);
  link?.focus({ preventScroll: true });
  card?.scrollIntoView({ block: "nearest", inline: "nearest" });
}
