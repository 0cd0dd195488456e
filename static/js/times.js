// Puts <time datetime data-time="ago|for|clock|day"> into the reader's words: how long ago, for how long (coarse, or running), which day.
const UNITS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];
const ago = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });

export function words(moment, style, now = Date.now()) {
  if (style === "day") return day.format(moment);
  if (style === "clock") return elapsed(Math.max(0, Math.floor((now - moment) / 1000)));
  if (style === "for") return lasting(Math.max(0, Math.floor((now - moment) / 1000)));
  const seconds = Math.round((moment - now) / 1000);
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return ago.format(Math.trunc(seconds / size), unit);
  }
  return Math.abs(seconds) < 5 ? "now" : ago.format(seconds, "second");
}

// For narrow places: 40 s, 6 min, 3 h, 2 d.
function lasting(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
}

function elapsed(seconds) {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const tail = `${String(minutes).padStart(2, "0")}:${String(rest).padStart(2, "0")}`;
  return hours ? `${hours}:${tail}` : tail;
}

export function writeTimes(root = document) {
  for (const time of root.querySelectorAll("time[data-time]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    const text = words(moment, time.dataset.time);
    if (time.textContent !== text) time.textContent = text;
    if (!time.title) time.title = full.format(moment);
  }
}

writeTimes();
setInterval(writeTimes, 1000);
// Whatever brings new HTML says so, and has its times written before the next paint.
new MutationObserver((records) => {
  if (records.some((record) => record.addedNodes.length)) writeTimes();
}).observe(document.body, { childList: true, subtree: true });
