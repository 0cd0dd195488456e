// Suggests a project's name from its address and its short name from the name, until the person writes their own.
const form = document.querySelector("[data-short-name]");
const [repository, name, key] = ["repository", "name", "key"].map((field) => form?.elements[field]);

export function nameOf(address) {
  const last = address.trim().replace(/[/\\]+$/, "").replace(/\.git$/, "").split(/[/\\:]/).pop() ?? "";
  const words = last.replace(/[-_.]+/g, " ").trim();
  return words ? words[0].toUpperCase() + words.slice(1) : "";
}

export function keyOf(title) {
  const words = title.normalize("NFKD").replace(/[^A-Za-z0-9 ]/g, "").toUpperCase().split(/\s+/).filter(Boolean);
  const joined = words.length > 1 ? words.map((word) => word[0]).join("").slice(0, 5) : (words[0] ?? "").slice(0, 3);
  const letters = joined.replace(/^[0-9]+/, "");
  return letters.length > 1 ? letters : (words.join("").replace(/^[0-9]+/, "").slice(0, 3));
}

if (form) {
  const own = new Set([name, key].filter((field) => field.value));
  for (const field of [name, key]) {
    field.addEventListener("input", () => (field.value ? own.add(field) : own.delete(field)));
  }
  form.addEventListener("input", () => {
    if (!own.has(name)) name.value = nameOf(repository.value);
    if (!own.has(key)) key.value = keyOf(name.value);
  });
  key.addEventListener("change", () => { key.value = key.value.toUpperCase(); });
}
