// Moving a card: shown at once, then asked for; if it is refused the card goes back and the reason is said.
import { announce, newOp, post, tell, toast } from "./http.js";
import { cardsIn, laneOf, linkIn, listOf, neighbour } from "./lanes.js";

const still = matchMedia("(prefers-reduced-motion: reduce)");

export function whereIs(card) {
  return { list: card.parentElement, next: card.nextElementSibling };
}

// Lets the card glide from where it was to where `change` puts it.
export function glide(card, change) {
  const before = card.getBoundingClientRect();
  const focused = card.contains(document.activeElement) ? document.activeElement : null;
  change();
  focused?.focus({ preventScroll: true });
  const after = card.getBoundingClientRect();
  card.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (still.matches) return;
  const [x, y] = [before.left - after.left, before.top - after.top];
  if (x || y) card.animate([{ translate: `${x}px ${y}px` }, { translate: "0 0" }], { duration: 160, easing: "ease-out" });
}

// Ask for the place where the card is now; `from` is where it was.
export async function settle(card, from) {
  const lane = laneOf(card);
  const columns = [from.list.closest(".lane").dataset.column, lane.dataset.column];
  tell("dragging", { columns });
  card.setAttribute("aria-busy", "true");
  const answer = await post(`/cards/${card.dataset.ref}/move/`, {
    column: lane.dataset.column,
    above: neighbour(card, "previous"),
    below: neighbour(card, "next"),
    op_id: newOp(),
  });
  card.removeAttribute("aria-busy");
  if (answer.ok) {
    card.dataset.rank = answer.body.rank;
    card.dataset.column = String(answer.body.column);
    announce(words(card, lane));
  } else {
    glide(card, () => from.list.insertBefore(card, from.next?.isConnected ? from.next : null));
    toast(answer.body.message, "error");
    announce(`${card.dataset.ref} stays where it was. ${answer.body.message}`);
  }
  tell("dropped");
  tell("moved", { card });
  return answer.ok;
}

function words(card, lane) {
  const cards = cardsIn(lane);
  return `${card.dataset.ref} moved to ${lane.dataset.name}, position ${cards.indexOf(card) + 1} of ${cards.length}.`;
}

// Put the card before `next` (or at the end) of a lane, and ask for it.
export function moveTo(card, lane, next = null) {
  const from = whereIs(card);
  glide(card, () => listOf(lane).insertBefore(card, next));
  linkIn(card)?.focus({ preventScroll: true });
  return settle(card, from);
}
