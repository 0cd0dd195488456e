// One socket for each tab, and an honest chip. `wire` sends commands and fires "frame" for each frame, from the
// socket or, where no socket opens, from the long poll. It never trusts a timer: waking up asks what was missed.
import { show } from "./chip.js";

const SILENCE = 60_000; // without any frame: the connection is dead, whatever the browser says
const ANSWER = 5_000; // for the answer to a question asked on waking up
const NO_SOCKET = 10_000; // then ask by HTTP until a socket opens
const HIDDEN = 300_000; // then give the connection back
const [MIN_WAIT, MAX_WAIT] = [500, 30_000];
const FINAL = { 4401: "signed-out", 4403: "revoked", 4404: "revoked" };

class Wire extends EventTarget {
  #socket = null;
  #config = null;
  #tries = 0;
  #retry = null;
  #hiding = null;
  #polling = null; // what stops the long poll, once it has answered
  #asking = false;
  #askAfter = 0;
  #welcomed = false;
  #ended = "";
  #health = { layer: true, reads: true };
  #heard = Date.now(); // when the last frame came
  #fresh = Date.now(); // until when what is shown was known to be true
  #lost = Date.now(); // since when there is no socket
  #deadline = 0; // when the answer to a question must be here

  // `position` returns { epoch, seq } of what the page shows.
  start({ socket, events, position }) {
    if (this.#config) return;
    this.#config = { socket, events, position };
    this.#connect();
    setInterval(() => this.#look(), 1000);
    for (const name of ["online", "pageshow", "focus"]) addEventListener(name, () => this.wake());
    document.addEventListener("visibilitychange", () => this.#seen());
    document.addEventListener("click", (event) => {
      if (event.target.closest?.("[data-live-retry]")) { event.preventDefault(); this.wake(); }
    });
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  send(command) {
    if (this.isOpen) this.#socket.send(JSON.stringify(command));
    return this.isOpen;
  }

  // Ask for everything after what the page shows.
  resume() {
    this.#deadline = Date.now() + ANSWER;
    if (!this.send({ type: "resume", ...this.#config.position() })) this.#deadline = 0;
  }

  // Something may have been missed: a sleep, a lost network, a page from the browser's cache.
  wake() {
    if (this.#ended) return;
    if (this.isOpen) this.resume();
    else if (this.#socket?.readyState !== WebSocket.CONNECTING) this.#connect();
  }

  #connect() {
    clearTimeout(this.#retry);
    const address = new URL(this.#config.socket, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new WebSocket(address);
    this.#socket = socket;
    socket.addEventListener("message", (event) => {
      if (socket === this.#socket) this.#take(JSON.parse(event.data));
    });
    socket.addEventListener("close", (event) => {
      if (socket === this.#socket) this.#closed(event.code);
    });
  }

  #take(frame) {
    const now = Date.now();
    this.#heard = now;
    this.#deadline = 0;
    if (frame.type === "hello") {
      this.#tries = 0;
      this.#welcomed = true;
      this.#polling?.abort();
      this.#polling = null;
      this.resume();
    }
    for (const name of ["layer", "reads"]) if (name in frame) this.#health[name] = frame[name];
    if (this.#health.reads) this.#fresh = now;
    this.dispatchEvent(new CustomEvent("frame", { detail: frame }));
    this.#look();
  }

  #closed(code) {
    if (this.#welcomed) this.#lost = Date.now();
    this.#welcomed = false;
    this.#socket = null;
    this.#deadline = 0;
    if (FINAL[code]) { this.#end(FINAL[code]); return; }
    this.dispatchEvent(new Event("lost"));
    this.#look();
    // Full jitter: after a restart of the server not everybody comes back at once.
    const wait = MIN_WAIT + Math.random() * Math.min(MAX_WAIT, MIN_WAIT * 2 ** this.#tries);
    this.#tries += 1;
    if (!document.hidden) this.#retry = setTimeout(() => this.#connect(), wait);
  }

  #drop() {
    const socket = this.#socket;
    if (!socket) return;
    this.#closed(0);
    socket.close();
  }

  #end(state) {
    this.#ended = state;
    this.#polling?.abort();
    show(state);
    // Who may not see this board any more sees it no longer.
    if (state === "revoked") location.reload();
  }

  #seen() {
    clearTimeout(this.#hiding);
    if (!document.hidden) this.wake();
    else this.#hiding = setTimeout(() => this.#drop(), HIDDEN);
  }

  #look() {
    if (this.#ended) return;
    const now = Date.now();
    if (this.isOpen && (now - this.#heard > SILENCE || (this.#deadline && now > this.#deadline))) this.#drop();
    const connected = this.isOpen || this.#polling;
    const away = now - this.#lost;
    if (!connected && away > NO_SOCKET && now > this.#askAfter) this.#poll();
    if (connected && !this.#health.reads) show("stale", this.#fresh);
    else if (connected) show(this.isOpen && this.#health.layer ? "live" : "slow");
    else if (away > SILENCE) show("stale", this.#fresh);
    else if (away > 3000) show("joining");
  }

  async #poll() {
    if (this.#asking || document.hidden) return;
    this.#asking = true;
    const stop = new AbortController();
    try {
      while (!stop.signal.aborted && !document.hidden) {
        const { epoch, seq } = this.#config.position();
        const wait = this.#polling ? 25 : 0;
        const url = `${this.#config.events}?since=${seq}&epoch=${epoch}&wait=${wait}`;
        const answer = await fetch(url, { signal: stop.signal, headers: { Accept: "application/json" } });
        if (answer.redirected || answer.status === 401) { this.#end("signed-out"); return; }
        if (answer.status === 404) { this.#end("revoked"); return; }
        if (!answer.ok) break;
        const { frames } = await answer.json();
        if (this.isOpen) break;
        this.#polling = stop;
        frames.forEach((frame) => this.#take(frame));
      }
    } catch {
      // No network at all: the next look tries again.
    }
    if (this.#polling === stop) this.#polling = null;
    this.#asking = false;
    this.#askAfter = Date.now() + 2000 + Math.random() * 4000;
  }
}

export const wire = new Wire();
