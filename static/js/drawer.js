// The drawer: a card opens beside the board, with its own address; forms in it are sent without leaving it.
import { announce, post, tell, toast } from "./http.js";
import { cardCalled, linkIn } from "./lanes.js";

const slot = document.querySelector("[data-drawer-slot]");
const home = `/p/${document.querySelector("[data-board]").dataset.project}/`;
const boardTitle = document.querySelector(".head h1")?.textContent ?? "";
let asked = 0;

export const drawer = () => slot.querySelector("[data-drawer]");
export const openedRef = () => drawer()?.dataset.ref ?? "";

async function read(url) {
  const number = ++asked;
  try {
    const answer = await fetch(url, { headers: { "X-Drawer": "1" }, cache: "no-store" });
    if (answer.redirected && !answer.url.includes("/cards/")) { location.assign(url); return null; }
    if (!answer.ok && answer.status !== 422) throw new Error(String(answer.status));
    const html = await answer.text();
    return number === asked ? html : null;
  } catch (error) {
    const gone = error.message === "404" ? "This card is gone, or you may not see it any more." : "";
    toast(gone || "The card could not be read. Try again.", "error");
    return null;
  }
}

// A board without an open card does not wait for the styles of logs and diffs; the first card brings them.
let styled = null;

function styles() {
  styled ??= Promise.all(slot.dataset.styles.split(" ").map((href) => new Promise((done) => {
    if (document.querySelector(`link[href="${href}"]`)) { done(); return; }
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
    link.addEventListener("load", done);
    link.addEventListener("error", done); // plain, but readable
    document.head.append(link);
  })));
  return styled;
}

export async function openDrawer(url, { push = true } = {}) {
  const [html] = await Promise.all([read(url), styles()]);
  if (html === null) return;
  slot.innerHTML = html;
  if (push) history.pushState({ drawer: url }, "", url);
  marked();
  toEnd();
  tell("drawer", { drawer: drawer() });
  const first = drawer()?.querySelector("[data-autofocus]");
  (first ?? drawer())?.focus({ preventScroll: true });
}

export function closeDrawer({ push = true } = {}) {
  const ref = openedRef();
  if (!drawer()) return;
  asked += 1;
  slot.replaceChildren();
  if (push) history.pushState({}, "", home + location.search);
  marked();
  const card = ref ? cardCalled(ref) : null;
  if (card) linkIn(card)?.focus({ preventScroll: true });
  else document.getElementById("board").focus({ preventScroll: true });
}

function marked() {
  document.querySelectorAll(".card--open").forEach((card) => card.classList.remove("card--open"));
  const ref = openedRef();
  const card = ref ? cardCalled(ref) : null;
  card?.classList.add("card--open");
  if (card && slot.firstElementChild) card.scrollIntoView({ block: "nearest", inline: "nearest" });
  const count = document.title.match(/^\(\d+\) /)?.[0] ?? "";
  const title = drawer()?.querySelector(".drawer__title, .drawer__bar h2")?.textContent;
  document.title = `${count}${title ? `${ref} ${title}`.trim() : `${boardTitle} · Board`} · Pullcord`;
}

// The end of a log is what happens now.
function toEnd() {
  const log = drawer()?.querySelector("[data-log]");
  if (log) log.closest(".drawer__body").scrollTop = log.scrollHeight + 9999;
}

// Bring the drawer up to date without disturbing who reads or writes in it.
export async function refresh({ whole = false } = {}) {
  const old = drawer();
  if (!old || "form" in old.dataset) return;
  const html = await read(location.pathname + location.search);
  if (html === null || drawer() !== old) return;
  const page = document.createElement("template");
  page.innerHTML = html;
  const fresh = page.content.querySelector("[data-drawer]");
  if (!fresh) return;
  const kept = remember(old);
  const sameLog = !whole && old.dataset.tab === "run"
    && old.querySelector("[data-log]")?.dataset.run === fresh.querySelector("[data-log]")?.dataset.run;
  for (const part of ["head", "foot", ...(sameLog ? [] : ["body"])]) swap(old, fresh, `[data-drawer-${part}]`);
  old.dataset.rev = fresh.dataset.rev;
  old.className = fresh.className;
  recall(old, kept);
  tell("drawer", { drawer: old });
}

function swap(old, fresh, selector) {
  const [before, after] = [old.querySelectorAll(selector), fresh.querySelectorAll(selector)];
  after.forEach((part, place) => (before[place] ? before[place].replaceWith(part) : old.append(part)));
  [...before].slice(after.length).forEach((part) => part.remove());
}

function remember(root) {
  const active = root.contains(document.activeElement) ? document.activeElement : null;
  return {
    texts: [...root.querySelectorAll("textarea[id], input[id]")].map((field) => [field.id, field.value]),
    open: [...root.querySelectorAll("details[data-keep][open]")].map((details) => details.dataset.keep),
    top: root.querySelector(".drawer__body")?.scrollTop ?? 0,
    focus: active?.id || (active ? name(active) : ""),
    caret: active?.selectionStart ?? null,
  };
}

function recall(root, { texts, open, top, focus, caret }) {
  for (const [id, value] of texts) {
    const field = root.querySelector(`#${CSS.escape(id)}`);
    if (field && value) field.value = value;
  }
  for (const keep of open) root.querySelector(`details[data-keep="${keep}"]`)?.setAttribute("open", "");
  const body = root.querySelector(".drawer__body");
  if (body && root.dataset.tab !== "run") body.scrollTop = top;
  if (!focus || root.contains(document.activeElement)) return;
  const target = root.querySelector(`#${CSS.escape(focus)}`)
    ?? [...root.querySelectorAll("a, button, summary")].find((element) => name(element) === focus) ?? root;
  target.focus({ preventScroll: true });
  if (caret !== null && target.setSelectionRange) target.setSelectionRange(caret, caret);
}

const name = (element) => element.getAttribute("aria-label") ?? element.textContent.trim();

async function send(form, submitter) {
  const url = submitter?.getAttribute("formaction") ?? form.getAttribute("action");
  if (form.dataset.busy) return;
  form.dataset.busy = "1";
  submitter?.setAttribute("aria-disabled", "true");
  const { ok, body } = await post(url, new FormData(form));
  delete form.dataset.busy;
  submitter?.removeAttribute("aria-disabled");
  form.querySelectorAll("[data-error]").forEach((line) => { line.hidden = true; });
  if (!ok) {
    let shown = false;
    for (const [field, words] of Object.entries(body.fields ?? {})) {
      const line = form.querySelector(`[data-error="${field}"]`);
      if (!line) continue;
      line.textContent = words;
      line.hidden = false;
      shown = true;
    }
    if (!shown) toast(body.message, "error");
    announce(body.message);
    return;
  }
  form.querySelectorAll("textarea").forEach((field) => { field.value = ""; });
  tell("sent", { form });
  if (body.message) ("steer" in form.dataset ? announce : toast)(body.message);
  if (submitter && "closes" in submitter.dataset) closeDrawer();
  else refresh();
}

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = event.target.closest("a[data-drawer-link], .card__title a, .ask-row__who a");
  if (link) { event.preventDefault(); openDrawer(link.getAttribute("href")); return; }
  if (event.target.closest("[data-drawer-close]")) { event.preventDefault(); closeDrawer(); }
});
// While it is captured: forms.js then leaves the form alone.
document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-act]")) return;
  event.preventDefault();
  send(event.target, event.submitter);
}, true);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.target.closest?.("form[data-act]")?.requestSubmit();
});
addEventListener("popstate", () => {
  if (location.pathname === home) closeDrawer({ push: false });
  else openDrawer(location.pathname + location.search, { push: false });
});
document.addEventListener("pullcord:card", (event) => {
  if (String(event.detail.id) === drawer()?.dataset.card) refresh();
});
document.addEventListener("pullcord:put", marked);
document.addEventListener("pullcord:lanes", marked);
if (drawer()) {
  marked();
  toEnd();
  drawer().querySelector("[data-autofocus]")?.focus();
}
