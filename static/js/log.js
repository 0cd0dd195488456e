// The live log of a run: takes pages of ops as the server sends them and shows them once a frame. Lines lie in
// chunks that the browser skips while they are out of sight; the oldest go when there are too many.
import { soon } from "./painting.js";
import { wire } from "./socket.js";

const CHUNK = 200; // lines
const CHUNKS = 25; // of one terminal: 5,000 lines; "Load earlier" and the raw log have the rest
const STEPS = 400; // elements at the top level of the log
const NEAR = 40; // pixels from the bottom that count as "at the bottom"
const HIDDEN = 30_000; // milliseconds in the background; then the log is no longer sent
const BUDGET = 8; // milliseconds of one frame
const MOST = 120; // milliseconds of one frame, where frames come so seldom that little ones would never catch up
const TELL = 100; // milliseconds between two acknowledgements

function isAtEnd({ scrollHeight, scrollTop, clientHeight }) {
  return scrollHeight - scrollTop - clientHeight < NEAR;
}

class Log {
  constructor(root) {
    this.root = root;
    this.run = Number(root.dataset.run);
    this.off = Number(root.dataset.off);
    this.first = Number(root.dataset.first);
    this.scroller = root.closest("[data-log-scroll]") ?? root.closest(".drawer__body") ?? root;
    this.queue = [];
    this.unread = 0;
    this.following = true;
    this.painting = false;
    this.planned = 0; // when the next painting was asked for
    this.telling = 0;
    this.pill = root.parentElement.querySelector("[data-log-new]");
    this.earlier = root.parentElement.querySelector("[data-log-earlier]");
    this.pill?.addEventListener("click", () => this.toBottom());
    this.earlier?.addEventListener("click", () => {
      wire.send({ type: "log.page", run: this.run, before: this.first });
    });
    this.scroller.addEventListener("scroll", () => this.noteScroll(), { passive: true });
    this.subscribe();
  }

  subscribe() {
    wire.send({ type: "log.sub", run: this.run, off: this.taken });
  }

  // The last item that came, shown or not yet.
  get taken() {
    return this.queue.at(-1)?.off ?? this.off;
  }

  leave() {
    wire.send({ type: "log.unsub", run: this.run });
  }

  take(frame) {
    if (frame.off <= this.taken) return;
    if (frame.first > this.taken + 1) { this.subscribe(); return; }
    this.queue.push({ ...frame, place: 0 });
    this.plan();
  }

  plan() {
    if (this.painting) return;
    this.painting = true;
    this.planned = performance.now();
    soon(() => this.paint());
  }

  paint() {
    this.painting = false;
    // A busy machine draws a few frames a second, so each of them has to bring more.
    const now = performance.now();
    const until = now + Math.min(Math.max(BUDGET, (now - this.planned) / 2), MOST);
    const stick = this.following;
    this.terminals = new Map(); // those written to now, and whether their end was in sight
    while (this.queue.length && performance.now() < until) {
      const frame = this.queue[0];
      while (frame.place < frame.ops.length && performance.now() < until) this.apply(frame.ops[frame.place++]);
      if (frame.place < frame.ops.length) break;
      this.queue.shift();
      this.off = frame.off;
      this.root.dataset.off = String(frame.off);
      this.acknowledge();
    }
    while (this.root.childElementCount > STEPS) this.root.firstElementChild.remove();
    for (const [terminal, atEnd] of this.terminals) if (atEnd) terminal.scrollTop = terminal.scrollHeight;
    if (stick) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.showPill();
    if (this.queue.length) this.plan();
  }

  // The server sends only so far beyond what was shown, and takes only so many commands a second.
  acknowledge() {
    this.telling ||= setTimeout(() => {
      this.telling = 0;
      wire.send({ type: "ack", run: this.run, off: this.off });
    }, TELL);
  }

  find(key) {
    const name = `[data-key="${CSS.escape(key)}"]`;
    return this.root.querySelector(name) ?? document.querySelector(`#run-head ${name}, [data-run-pane] ${name}`);
  }

  apply({ op, key, to, html }) {
    const target = op === "add" && !to ? this.root : this.find(to ?? key);
    if (!target) return;
    if (op === "set") { target.outerHTML = html; return; }
    if (op === "add" || !target.matches("[data-key$='-out']")) {
      target.insertAdjacentHTML("beforeend", html);
      if (!this.following) this.unread += 1;
      return;
    }
    this.lines(target, html);
  }

  lines(target, html) {
    const terminal = target.closest(".term__body");
    if (terminal && !this.terminals.has(terminal)) this.terminals.set(terminal, isAtEnd(terminal));
    const template = document.createElement("template");
    template.innerHTML = html;
    const lines = [...template.content.childNodes];
    if (!this.following) this.unread += lines.length;
    while (lines.length) {
      let chunk = target.lastElementChild;
      if (!chunk?.matches(".log__chunk") || chunk.childNodes.length >= CHUNK) {
        chunk = document.createElement("span");
        chunk.className = "log__chunk";
        target.append(chunk);
      }
      chunk.append(...lines.splice(0, CHUNK - chunk.childNodes.length));
    }
    while (target.childElementCount > CHUNKS) {
      target.firstElementChild.remove();
      target.dataset.cut = "";
    }
  }

  // A page from before what is shown. It is put together apart, so that its ops find each other.
  prepend(frame) {
    if (frame.run !== this.run || frame.first >= this.first) { this.earlier?.setAttribute("hidden", ""); return; }
    const page = document.createElement("div");
    for (const { op, key, to, html } of frame.ops) {
      const name = `[data-key="${CSS.escape(to ?? key)}"]`;
      const target = op === "add" && !to ? page : page.querySelector(name);
      if (!target) continue;
      if (op === "set") target.outerHTML = html;
      else target.insertAdjacentHTML("beforeend", html);
    }
    const height = this.scroller.scrollHeight;
    this.root.prepend(...page.childNodes);
    this.scroller.scrollTop += this.scroller.scrollHeight - height;
    this.first = frame.first;
    if (this.earlier) this.earlier.hidden = this.first <= 1;
  }

  noteScroll() {
    this.following = isAtEnd(this.scroller);
    if (this.following) this.unread = 0;
    this.showPill();
  }

  toBottom() {
    this.following = true;
    this.unread = 0;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.showPill();
  }

  showPill() {
    if (!this.pill) return;
    this.pill.hidden = this.unread === 0;
    this.pill.textContent = `${this.unread} new ${this.unread === 1 ? "line" : "lines"}`;
  }
}

let log = null;
let hiding = null;

// The drawer brings and takes logs; the one in the page is the one that is followed.
function look() {
  const root = document.querySelector("[data-log]");
  if (root === (log?.root ?? null)) return;
  log?.leave();
  log = root ? new Log(root) : null;
}

// Too far behind: the page has a fresh end of the log.
async function readAgain() {
  const answer = await fetch(location.href, { cache: "no-store" });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector("[data-log]");
  if (fresh && log) log.root.replaceWith(fresh);
  look();
}

const FRAMES = {
  hello: () => log?.subscribe(),
  log: (frame) => { if (frame.run === log?.run) log.take(frame); },
  "log.page": (frame) => log?.prepend(frame),
  "log.gap": (frame) => { if (frame.run === log?.run) readAgain(); },
  head: (frame) => {
    const head = document.getElementById("run-head");
    if (frame.run === log?.run && head) head.outerHTML = frame.html;
  },
};

wire.addEventListener("frame", (event) => FRAMES[event.detail.type]?.(event.detail));
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => log?.leave(), HIDDEN);
  else log?.subscribe();
});
new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
look();
