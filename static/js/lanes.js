// Which lanes a card may go to, as far as the page can know; the server decides and says why not.
const TAKES = {
  backlog: ["queued", "review", "done"],
  queued: ["backlog"],
  running: [],
  review: ["backlog", "merging", "done"],
  merging: [],
  done: [],
  failed: ["backlog", "queued"],
  cancelled: ["backlog"],
};

export const lanes = () => [...document.querySelectorAll(".lane")];
export const laneOf = (element) => element.closest(".lane");
export const listOf = (lane) => lane.querySelector("[data-cards]");
export const cardsIn = (lane) => [...listOf(lane).children].filter((child) => child.matches(".card:not([hidden])"));
export const cardCalled = (ref) => document.querySelector(`.card[data-ref="${CSS.escape(ref)}"]`);
export const linkIn = (card) => card.querySelector(".card__title a");
export const mayChange = () => document.documentElement.dataset.role !== "viewer";

// `home` is the lane from which it comes, which it may have left already while it is being dragged.
export function takes(lane, card, home = laneOf(card)) {
  return lane.dataset.lane === home?.dataset.lane
    || (TAKES[card.dataset.status] ?? []).includes(lane.dataset.lane);
}

// The nearest card above (previous) or below (next); what is no card is passed over.
export function neighbour(card, side) {
  let other = card[`${side}ElementSibling`];
  while (other && !other.dataset.ref) other = other[`${side}ElementSibling`];
  return other?.dataset.ref ?? "";
}
