// Says what others did: politely to a screen reader, and in a message where it asks for attention.
const PAUSE = 1000; // milliseconds that sentences are collected: twenty changes are one announcement
let waiting = [];
let timer = null;

function speak() {
  timer = null;
  const region = document.getElementById("announcer");
  const last = waiting.at(-1);
  if (region && last) region.textContent = waiting.length === 1 ? last : `${waiting.length} changes. The last: ${last}`;
  waiting = [];
}

export function say(text) {
  waiting.push(text);
  timer ??= setTimeout(speak, PAUSE);
}

document.addEventListener("pullcord:happened", (event) => {
  const { text, ref, user, loud } = event.detail;
  if (String(user ?? "") === document.documentElement.dataset.me) return;
  say(text);
  if (!loud || document.hidden) return;
  const action = ref ? { text: "Open", run: () => location.assign(`/cards/${ref}/`) } : null;
  document.dispatchEvent(new CustomEvent("pullcord:toast", { detail: { text, level: "warning", action } }));
});
