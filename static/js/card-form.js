// The form of a card: a draft that survives, errors beside their fields, both texts when two people edit.
import { announce, post, toast } from "./http.js";
import { closeDrawer, drawer, openDrawer } from "./drawer.js";

const FIELDS = ["title", "goal", "checks", "no_check", "files", "constraints", "depends_on", "priority"];
const keyOf = (form) => `pullcord:draft:${form.dataset.draftKey}`;
let timer = null;

function valuesOf(form) {
  const data = new FormData(form);
  return Object.fromEntries([...FIELDS, "rev"].map((name) => [name, data.get(name) ?? ""]));
}

function keep(form) {
  const values = valuesOf(form);
  const isChanged = FIELDS.some((name) => values[name] !== form.original[name]);
  if (isChanged) localStorage.setItem(keyOf(form), JSON.stringify(values));
  else localStorage.removeItem(keyOf(form));
  form.querySelector("[data-draft-words]").textContent = isChanged ? "Draft kept" : "";
}

function fill(form, values) {
  for (const name of FIELDS) {
    const field = form.elements[name];
    if (!field || values[name] === undefined) continue;
    if (field instanceof RadioNodeList) field.value = values[name];
    else if (field.type === "checkbox") field.checked = Boolean(values[name]);
    else field.value = values[name];
  }
}

function start() {
  const form = drawer()?.querySelector("[data-card-form]");
  if (!form || form.original) return;
  form.original = valuesOf(form);
  const draft = JSON.parse(localStorage.getItem(keyOf(form)) ?? "null");
  // A text that the server sent back with errors is newer than any draft.
  if (!draft || form.querySelector("[aria-invalid]")) return;
  fill(form, draft);
  if (draft.rev && form.elements.rev) form.elements.rev.value = draft.rev;
  const words = form.querySelector("[data-draft-words]");
  const discard = document.createElement("button");
  discard.type = "button";
  discard.className = "link";
  discard.textContent = "Discard";
  discard.addEventListener("click", () => {
    localStorage.removeItem(keyOf(form));
    fill(form, form.original);
    if (form.elements.rev) form.elements.rev.value = form.original.rev;
    words.textContent = "";
  });
  words.replaceChildren("Your draft is back. ", discard);
}

function showErrors(form, { fields = {}, message, theirs }) {
  let first = null;
  for (const line of form.querySelectorAll("[data-error]")) {
    const words = fields[line.dataset.error];
    line.hidden = !words;
    line.textContent = words ?? "";
    const field = form.elements[line.dataset.error];
    if (field instanceof Element) field.toggleAttribute("aria-invalid", Boolean(words));
    if (field instanceof Element && words) field.setAttribute("aria-invalid", "true");
    if (words) first ??= field instanceof RadioNodeList ? field[0] : field;
  }
  const refusal = form.querySelector("[data-refusal]");
  refusal.hidden = Boolean(first) || !message;
  refusal.querySelector("[data-refusal-words]").textContent = message ?? "";
  const both = form.querySelector("[data-theirs]");
  both.hidden = !theirs;
  if (theirs) {
    both.querySelector("[data-theirs-text]").textContent = ["title", "goal", "constraints", "files", "checks", "depends_on"]
      .filter((name) => theirs[name]).map((name) => theirs[name]).join("\n\n");
    // The next save is made knowing theirs.
    form.elements.rev.value = theirs.rev;
  }
  (first ?? refusal).focus?.();
  (first ?? refusal).scrollIntoView({ block: "center" });
}

async function save(form, submitter) {
  if (form.dataset.busy) return;
  form.dataset.busy = "1";
  const data = new FormData(form);
  if (submitter?.name) data.set(submitter.name, submitter.value);
  const { ok, body } = await post(form.getAttribute("action"), data);
  delete form.dataset.busy;
  if (!ok) {
    showErrors(form, body);
    announce(body.message);
    return;
  }
  localStorage.removeItem(keyOf(form));
  if (form.closest("[data-ref]")) { openDrawer(body.url); return; }
  closeDrawer();
  toast(`${body.ref} is added.`, "info", { text: "Open", run: () => openDrawer(body.url) });
  announce(`${body.ref} is added.`);
}

document.addEventListener("input", (event) => {
  const form = event.target.closest?.("[data-card-form]");
  if (!form) return;
  clearTimeout(timer);
  timer = setTimeout(() => keep(form), 250);
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-card-form]")) return;
  event.preventDefault();
  save(event.target, event.submitter);
}, true);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const form = event.target.closest?.("[data-card-form]");
  if (form) save(form, form.querySelector("[type=submit].btn--ink"));
});
document.addEventListener("pullcord:drawer", start);
start();
