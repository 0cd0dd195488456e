// Dragging cards with a mouse, a pen or a finger.
import "../vendor/Sortable.min.js";
import { tell } from "./http.js";
import { lanes, laneOf, listOf, mayChange, takes } from "./lanes.js";
import { settle, whereIs } from "./move.js";

const Sortable = globalThis.Sortable;
let from = null;

function mark(card, isOver) {
  const home = from.list.closest(".lane");
  for (const lane of lanes()) {
    const refuses = isOver !== null && !takes(lane, card, home);
    lane.classList.toggle("lane--refuses", refuses);
    lane.classList.toggle("lane--target", lane === isOver && !refuses);
  }
}

const options = {
  group: "cards",
  draggable: ".card",
  animation: 140,
  easing: "cubic-bezier(.2, .8, .2, 1)",
  // The same with a mouse as with a finger, and the card itself is what is carried.
  forceFallback: true,
  fallbackOnBody: true,
  fallbackTolerance: 4,
  delay: 180,
  delayOnTouchOnly: true,
  touchStartThreshold: 6,
  ghostClass: "card--ghost",
  fallbackClass: "card--lifted",
  filter: "button, .btn",
  preventOnFilter: false,
  scrollSensitivity: 70,
  onChoose: ({ item }) => { from = whereIs(item); },
  onStart: ({ item }) => {
    tell("dragging", { columns: [laneOf(item).dataset.column] });
    mark(item, laneOf(item));
    document.body.classList.add("is-dragging");
  },
  onMove: ({ dragged, to }) => {
    const lane = to.closest(".lane");
    tell("dragging", { columns: [lane.dataset.column] });
    mark(dragged, lane);
  },
  onEnd: ({ item }) => {
    mark(item, null);
    document.body.classList.remove("is-dragging");
    const here = whereIs(item);
    if (here.list === from.list && here.next === from.next) { tell("dropped"); return; }
    settle(item, from);
  },
};

function attach() {
  for (const list of lanes().map(listOf)) {
    if (!Sortable.get(list)) Sortable.create(list, { ...options, disabled: !mayChange() });
  }
}

attach();
document.addEventListener("pullcord:lanes", attach);
// A role may change while the page is open.
new MutationObserver(() => {
  for (const list of lanes().map(listOf)) Sortable.get(list)?.option("disabled", !mayChange());
}).observe(document.documentElement, { attributeFilter: ["data-role"] });
