// The chip that says whether the board is true now. `data-live` on <html> says the same to the style sheets.
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const LOOKS = {
  live: ["live", "Live"],
  joining: ["live live--joining", "Reconnecting…"],
  slow: ["live live--stale", "Not live · slow updates"],
  stale: ["live live--stale", "Not live"],
  "signed-out": ["live live--stale", "Signed out · "],
  revoked: ["live live--stale", "You are no longer a member"],
};
let shown = "";

export function show(state, since = 0) {
  const [look, words] = LOOKS[state];
  const when = state === "stale" ? ` · last update ${clock.format(since)} · ` : "";
  const text = words + when;
  if (text === shown) return;
  shown = text;
  document.documentElement.dataset.live = state;
  for (const chip of document.querySelectorAll("[data-live-chip], .live[data-live]")) {
    chip.className = look;
    chip.replaceChildren(text);
    if (state === "stale") chip.append(link("retry", "#", "liveRetry"));
    if (state === "signed-out") chip.append(link("sign in", `/signin/?next=${encodeURIComponent(location.pathname)}`));
  }
}

function link(text, href, name = "") {
  const made = document.createElement("a");
  made.textContent = text;
  made.href = href;
  if (name) made.dataset[name] = "";
  return made;
}
