// Small aids of forms: ask before what cannot be taken back, copy, submit on change, no second sending.
function ask(text) {
  const dialog = document.createElement("dialog");
  dialog.className = "dialog";
  const words = document.createElement("p");
  words.id = "dialog-words";
  words.textContent = text;
  dialog.setAttribute("aria-labelledby", words.id);
  const form = document.createElement("form");
  form.method = "dialog";
  form.className = "dialog__acts";
  for (const [value, label, look] of [["", "Keep it", "btn"], ["yes", "Go on", "btn btn--ink"]]) {
    const button = document.createElement("button");
    button.value = value;
    button.className = look;
    button.textContent = label;
    form.append(button);
  }
  dialog.append(words, form);
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    dialog.showModal();
  });
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method === "dialog" || event.defaultPrevented) return;
  if (form.dataset.confirm && !form.dataset.confirmed) {
    event.preventDefault();
    if (!(await ask(form.dataset.confirm))) return;
    form.dataset.confirmed = "1";
    form.requestSubmit(event.submitter);
    return;
  }
  if (form.dataset.sending) {
    event.preventDefault();
    return;
  }
  form.dataset.sending = "1";
  // Not `disabled`: the value of the pressed button is still to be sent.
  event.submitter?.setAttribute("aria-disabled", "true");
});

// A page that comes back from the browser's memory may be sent again.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sending]")) {
    delete form.dataset.sending;
    delete form.dataset.confirmed;
    form.querySelectorAll("[aria-disabled]").forEach((button) => button.removeAttribute("aria-disabled"));
  }
});

document.addEventListener("change", (event) => {
  event.target.closest("form[data-submit-on-change]")?.requestSubmit();
});

document.addEventListener("click", async (event) => {
  const copy = event.target.closest?.("[data-copy]");
  if (copy) {
    const source = document.querySelector(copy.dataset.copy);
    source.select();
    try {
      await navigator.clipboard.writeText(source.value);
      document.dispatchEvent(new CustomEvent("pullcord:toast", { detail: { text: "Copied." } }));
    } catch {
      // Not allowed on this page: the text is selected, for Ctrl+C.
    }
  }
  if (event.target.matches?.("[data-select]")) event.target.select();
  if (event.target.closest?.("[data-back]") && history.length > 1) {
    event.preventDefault();
    history.back();
  }
});
