// Shows a choice of looks at once, and stores it.
const form = document.querySelector("[data-appearance]");

form?.addEventListener("change", async () => {
  const data = new FormData(form);
  const root = document.documentElement;
  if (data.get("theme")) root.dataset.theme = data.get("theme");
  else delete root.dataset.theme;
  document.querySelector("meta[name=color-scheme]").content = data.get("theme") || "light dark";
  root.classList.toggle("compact", data.get("density") === "compact");
  const answer = await fetch(form.action, {
    method: "POST", body: data, headers: { Accept: "application/json" },
  }).catch(() => null);
  if (answer?.ok) return;
  document.dispatchEvent(new CustomEvent("pullcord:toast", {
    detail: { level: "error", text: "The looks were not stored. Reload the page and try again." },
  }));
});
