// What a frame does to the board: puts, takes away and counts cards without disturbing who works in it.
const FRESH = 600; // milliseconds that a change by others is tinted
const still = matchMedia("(prefers-reduced-motion: reduce)");
const FOCUSABLE = "a[href], button, input, select, textarea, [tabindex]";

const lane = (column) => document.querySelector(`.lane[data-column="${column}"]`);
const cardOf = (id) => document.getElementById(`card-${id}`);
const tell = (name, detail) => document.dispatchEvent(new CustomEvent(`pullcord:${name}`, { detail }));

function element(html) {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  return template.content.firstElementChild;
}

// The columns that an op touches: where its card stands, and where it goes.
export function columnsOf(op) {
  const here = cardOf(op.id)?.dataset.column;
  return [op.column === undefined ? null : String(op.column), here ?? null].filter((column) => column !== null);
}

const OPS = {
  put(op, quiet) {
    const old = cardOf(op.id);
    // Equal is not older: what a card shows of other cards changes without its own rev.
    if (old && Number(old.dataset.rev) > op.rev) return;
    if (old?.outerHTML === op.html) return;
    const list = lane(op.column)?.querySelector("[data-cards]");
    if (!list) return;
    const focus = rememberFocus(old);
    const moved = old?.dataset.column !== String(op.column) || old?.dataset.rank !== op.rank;
    const fresh = element(op.html);
    old?.remove();
    if (!insert(list, fresh, op.rank)) { tell("removed", { id: op.id }); return; }
    restoreFocus(focus, fresh);
    if (!quiet && Number(old?.dataset.rev ?? 0) < op.rev) tint(fresh, moved ? "card--arrived" : "card--changed");
    tell("put", { card: fresh });
  },
  del(op) {
    const old = cardOf(op.id);
    if (!old || Number(old.dataset.rev) > op.rev) return;
    const next = old.nextElementSibling ?? old.previousElementSibling;
    const hadFocus = old.contains(document.activeElement);
    old.remove();
    if (hadFocus) next?.querySelector(FOCUSABLE)?.focus({ preventScroll: true });
    tell("removed", { id: op.id });
  },
  count(op) {
    const section = lane(op.column);
    if (!section) return;
    section.dataset.limit = op.limit ?? "";
    section.dataset.total = String(op.n);
    section.classList.toggle("lane--over", op.limit !== null && op.n > op.limit);
    const number = section.querySelector("[data-count]");
    const text = op.limit ? `${op.n} / ${op.limit}` : String(op.n);
    if (number && number.textContent.trim() !== text) number.textContent = text;
    tell("count", op);
  },
  cord(op) {
    swap("cord", op.html);
    tell("cord", { n: op.n });
  },
  notices(op) {
    swap("notices", op.html);
  },
};

export function apply(op, { quiet }) {
  OPS[op.op]?.(op, quiet);
}

// Bytewise order of ranks, by bisection: right also where a filter hides cards. A column that is not loaded to
// its end ends with [data-more]; what belongs below that comes when it is loaded.
function insert(list, card, rank) {
  const cards = [...list.children].filter((child) => "rank" in child.dataset);
  let [low, high] = [0, cards.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cards[middle].dataset.rank < rank) low = middle + 1;
    else high = middle;
  }
  const isCut = list.closest(".lane").querySelector("[data-more]");
  if (isCut && low === cards.length) return false;
  list.insertBefore(card, cards[low] ?? (cards.length ? cards.at(-1).nextSibling : list.firstChild));
  return true;
}

function rememberFocus(root) {
  if (!root?.contains(document.activeElement)) return null;
  return document.activeElement === root ? -1 : [...root.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
}

function restoreFocus(place, root) {
  if (place === null) return;
  const target = place < 0 ? root : [...root.querySelectorAll(FOCUSABLE)][place] ?? root.querySelector(FOCUSABLE);
  target?.focus({ preventScroll: true });
}

function tint(card, name) {
  if (still.matches) return;
  card.classList.add(name);
  setTimeout(() => card.classList.remove(name), FRESH);
}

// Replace a part of the page by id. Text that somebody types in it now is not lost.
function swap(id, html) {
  const old = document.getElementById(id);
  if (!old || old.outerHTML === html) return;
  if (old.contains(document.activeElement) && document.activeElement.matches("input, textarea")) return;
  const focus = rememberFocus(old);
  const fresh = element(html);
  old.replaceWith(fresh);
  restoreFocus(focus, fresh);
}

// What a run does now, between two events.
export function tick(run) {
  for (const [name, text] of [["activity", run.activity], ["step", run.step]]) {
    for (const place of document.querySelectorAll(`[data-${name}="${run.run}"]`)) {
      if (place.textContent !== text) place.textContent = text;
    }
  }
}

// Make the lanes, the banner and the notices equal to those of a fresh page.
export function replaceBoard(board, page) {
  for (const id of ["cord", "notices"]) {
    const fresh = page.getElementById(id);
    if (fresh) swap(id, fresh.outerHTML);
  }
  const focused = document.activeElement?.closest?.(".card")?.id;
  const [old, fresh] = [board, page].map((root) => [...root.querySelectorAll(".lane")]);
  const known = new Map(old.map((section) => [section.dataset.column, section]));
  const home = old[0]?.parentNode;
  for (const section of fresh) {
    const before = known.get(section.dataset.column);
    const top = before?.querySelector("[data-cards]")?.scrollTop ?? 0;
    known.delete(section.dataset.column);
    home?.append(section);
    before?.remove();
    const list = section.querySelector("[data-cards]");
    if (list) list.scrollTop = top;
  }
  known.forEach((section) => section.remove());
  document.getElementById(focused)?.querySelector(FOCUSABLE)?.focus({ preventScroll: true });
  tell("lanes", { board });
}
