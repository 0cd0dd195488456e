// The editor of a policy: line numbers, the answer to a typed call as it is typed, the replay in its place.
import { toast } from "./http.js";

const PAUSE_MS = 400; // of typing, before the call is tried
const form = document.querySelector("[data-policy]");
const text = form?.elements.text;
const numbers = form?.querySelector("[data-policy-lines]");
const LEAST_LINES = 14;
let typing = 0;
let asked = 0;

function number() {
  const lines = Math.max(text.value.split("\n").length + 1, LEAST_LINES);
  if (Number(numbers.dataset.count) === lines) return;
  numbers.dataset.count = lines;
  numbers.textContent = Array.from({ length: lines }, (_, at) => `${at + 1}\n`).join("");
  text.rows = lines;
}

function isEdited() {
  return text.value !== text.defaultValue;
}

function edited() {
  number();
  form.querySelector("[data-policy-edited]").hidden = !isEdited();
}

// Asks for one part of the page and puts it in its place. A later question makes an earlier answer worthless.
async function part(name) {
  const place = form.querySelector(`[data-policy-result="${name}"]`);
  const data = new FormData(form);
  data.set("do", name);
  const mine = ++asked;
  try {
    const answer = await fetch(form.action, {
      method: "POST",
      body: new URLSearchParams(data),
      headers: { "X-Fragment": "1" },
    });
    const html = await answer.text();
    if (name === "try" && mine !== asked) return;
    if (!answer.ok) throw new Error(String(answer.status));
    place.innerHTML = html;
    if (name !== "try") place.scrollIntoView({ block: "nearest" });
  } catch {
    if (name !== "try") toast("The server did not answer. Try again.", "error");
  }
}

function tryCall() {
  clearTimeout(typing);
  typing = setTimeout(() => part("try"), PAUSE_MS);
}

function addConverted() {
  text.value = `${text.value.trimEnd()}\n---\n${form.querySelector("[data-policy-converted]").value}`;
  edited();
  text.focus();
}

function goToLine(line) {
  const lines = text.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  text.focus();
  text.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
  text.scrollIntoView({ block: "nearest" });
}

if (form) {
  edited();
  text.addEventListener("input", () => {
    edited();
    if (form.elements.call.value.trim()) tryCall();
  });
  form.elements.call.addEventListener("input", tryCall);
  form.elements.tool.addEventListener("change", tryCall);
  form.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-policy-part]");
    if (event.target.closest("[data-policy-add]")) {
      event.preventDefault();
      addConverted();
    } else if (button) {
      event.preventDefault();
      button.setAttribute("aria-busy", "true");
      await part(button.dataset.policyPart);
      button.removeAttribute("aria-busy");
    }
  });
  document.addEventListener("click", (event) => {
    const often = event.target.closest("[data-policy-try]");
    if (often) {
      form.elements.tool.value = "bash";
      form.elements.call.value = often.dataset.policyTry;
      tryCall();
    }
    const line = event.target.closest("[data-policy-line]");
    if (line) goToLine(Number(line.dataset.policyLine));
  });
  // What was typed and not saved is not lost by a wrong click.
  window.addEventListener("beforeunload", (event) => {
    if (isEdited() && !form.dataset.sending) event.preventDefault();
  });
}
