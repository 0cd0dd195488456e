// Keeps the board true: takes frames in the order of their seq, and asks again for whatever it missed.
// What the ops do to the page is in board-ops.js.
import "./announce.js";
import { apply, columnsOf, replaceBoard, tick } from "./board-ops.js";
import { wire } from "./socket.js";

const BUFFER = 500; // frames that came too early
const PATIENCE = 400; // milliseconds that a missing frame may be late
const board = document.querySelector("[data-board]");
let applied = Number(board?.dataset.seq);
let epoch = Number(board?.dataset.epoch);
let early = [];
let gap = null;
let reading = false;
const held = new Set(); // the columns of a card that is being dragged
const later = new Map(); // ops that wait until it is dropped or the tab is seen: the last of each kind wins
const mine = new Set(); // op ids of this tab, whose effect it shows already

function take(frame) {
  const [from, to] = frame.type === "ev" ? [frame.seq, frame.seq] : [frame.from, frame.to];
  if (to <= applied) return;
  if (from > applied + 1) {
    early.push(frame);
    if (early.length > BUFFER) early = [];
    gap ??= setTimeout(askAgain, PATIENCE);
    return;
  }
  applied = to;
  board.dataset.seq = String(applied);
  const own = mine.has(frame.op_id);
  for (const op of frame.ops) handle(op, own);
  const next = early.sort((a, b) => (a.seq ?? a.from) - (b.seq ?? b.from)).shift();
  if (next) take(next);
}

function askAgain() {
  gap = null;
  if (!early.length) return;
  early = [];
  wire.resume();
}

function handle(op, own = false) {
  if (op.op === "col") { reload(); return; }
  if (op.op === "toast") {
    if (!own) document.dispatchEvent(new CustomEvent("pullcord:happened", { detail: op }));
    return;
  }
  if (op.op === "card") {
    document.dispatchEvent(new CustomEvent("pullcord:card", { detail: op }));
    return;
  }
  if (mustWait(op)) {
    later.delete(nameOf(op));
    later.set(nameOf(op), [op, own]);
    return;
  }
  later.delete(nameOf(op));
  apply(op, { quiet: own || document.hidden });
}

function nameOf(op) {
  return op.op === "put" || op.op === "del" ? `card ${op.id}` : `${op.op} ${op.column ?? ""}`;
}

function mustWait(op) {
  if (document.hidden) return true;
  return held.size > 0 && columnsOf(op).some((column) => held.has(column));
}

function flush() {
  const waiting = [...later.values()];
  later.clear();
  waiting.forEach(([op, own]) => handle(op, own));
}

// Read the whole page again: too much was missed, or the board has another shape.
async function reload() {
  if (reading) return;
  if (held.size) { later.set("reload", [{ op: "col" }, true]); return; }
  reading = true;
  try {
    const answer = await fetch(`/p/${board.dataset.project}/`, { cache: "no-store" });
    if (answer.redirected || answer.status === 404) { location.reload(); return; }
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const root = fresh.querySelector("[data-board]");
    if (!root) { location.reload(); return; }
    replaceBoard(board, fresh);
    [applied, epoch] = [Number(root.dataset.seq), Number(root.dataset.epoch)];
    Object.assign(board.dataset, { seq: root.dataset.seq, epoch: root.dataset.epoch });
    early = [];
    later.clear();
  } catch {
    // No network: the next heartbeat finds the difference again.
    return;
  } finally {
    reading = false;
  }
  wire.resume();
}

const FRAMES = {
  ev: take,
  batch: take,
  now: (frame) => frame.ops.forEach((op) => handle(op)),
  tick: (frame) => frame.runs.forEach(tick),
  resync: reload,
  lag: () => { early = []; wire.resume(); },
  hello: (frame) => { if (frame.epoch !== epoch) reload(); },
  hb: (frame) => {
    wire.send({ type: "pong" });
    if (frame.epoch !== epoch) reload();
    else if (frame.seq > applied) wire.resume();
  },
  you: (frame) => {
    if ("approvals" in frame) document.dispatchEvent(new CustomEvent("pullcord:cord", { detail: frame }));
    if ("role" in frame) document.documentElement.dataset.role = frame.role;
  },
};

if (board) {
  wire.addEventListener("frame", (event) => FRAMES[event.detail.type]?.(event.detail));
  wire.start({
    socket: board.dataset.socket,
    events: board.dataset.events,
    position: () => ({ epoch, seq: applied }),
  });
  document.addEventListener("pullcord:dragging", (event) => {
    event.detail.columns.forEach((column) => held.add(String(column)));
  });
  document.addEventListener("pullcord:dropped", () => { held.clear(); flush(); });
  document.addEventListener("pullcord:op", (event) => mine.add(event.detail.op_id));
  document.addEventListener("pullcord:resync", reload);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) flush(); });
}
