// Browser notifications about questions, while no one looks at this tab. A person turns them on for this device
// with a button [data-notify]; the browser asks for its permission then, and only then.
const KEY = "pullcord.notify";
const SECONDS = 20;
const able = "Notification" in window && window.isSecureContext && document.querySelector("[data-waiting]") !== null;
let latest = null; // the newest question that this tab knows of
let timer = null;

function isOn() {
  return able && Notification.permission === "granted" && localStorage.getItem(KEY) === "on";
}

function draw() {
  for (const button of document.querySelectorAll("[data-notify]")) {
    button.hidden = !able;
    const denied = able && Notification.permission === "denied";
    button.setAttribute("aria-pressed", String(isOn()));
    button.disabled = denied;
    const words = button.querySelector("[data-notify-words]");
    words.textContent = denied ? "The browser blocks notifications" : isOn() ? "Told on this device" : "Tell me on this device";
  }
}

async function ask() {
  const answer = await fetch("/approvals/waiting/", { headers: { Accept: "application/json" } });
  return answer.ok ? answer.json() : null;
}

async function look() {
  clearTimeout(timer);
  if (!isOn()) return;
  try {
    const now = await ask();
    if (now) {
      if (document.hidden && latest !== null && (now.newest ?? 0) > latest) show(now);
      latest = Math.max(latest ?? 0, now.newest ?? 0);
    }
  } catch {
    // No connection: the next try is a few seconds away.
  }
  if (document.hidden) timer = setTimeout(look, SECONDS * 1000);
}

function show({ newest, words, waiting }) {
  const more = waiting > 1 ? `${waiting} questions wait.` : "";
  // The tag is the same in every tab, so several tabs tell it once.
  const note = new Notification(words, { body: more, tag: `pullcord-question-${newest}` });
  note.addEventListener("click", () => {
    window.focus();
    location.assign(`/approvals/${newest}/`);
    note.close();
  });
}

if (able) {
  document.addEventListener("click", async (event) => {
    if (!event.target.closest("[data-notify]")) return;
    if (isOn()) localStorage.removeItem(KEY);
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(KEY, "on");
    draw();
    look();
  });
  document.addEventListener("visibilitychange", look);
  look();
}
draw();
