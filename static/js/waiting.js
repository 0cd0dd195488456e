// How many questions wait: in the rail, in the page's title and on its icon. Asks every few seconds while the
// page is seen, and at once when somebody says `pullcord:cord` (a question came or was answered).
const SECONDS = 8;
const link = document.querySelector("[data-waiting]");
let stamp = link?.dataset.stamp;
let timer = null;
let asking = false;

function write(count) {
  const before = Number(link.dataset.waiting);
  link.dataset.waiting = String(count);
  link.classList.toggle("rail__item--waiting", count > 0);
  const badge = link.querySelector(".rail__count");
  badge.hidden = count === 0;
  badge.querySelector("[data-waiting-count]").textContent = String(count);
  const mark = document.querySelector(".rail__mark svg");
  if (mark && (before > 0) !== (count > 0)) {
    mark.classList.toggle("mark--idle", count === 0);
    const use = mark.querySelector("use");
    use.setAttribute("href", use.getAttribute("href").replace(/#.*/, count ? "#mark" : "#mark-idle"));
  }
  document.title = document.title.replace(/^\(\d+\) /, "");
  if (count) document.title = `(${count}) ${document.title}`;
}

async function ask() {
  clearTimeout(timer);
  if (asking || document.hidden) return;
  asking = true;
  try {
    const answer = await fetch("/approvals/waiting/", { headers: { Accept: "application/json" } });
    if (answer.ok) {
      const body = await answer.json();
      write(body.waiting);
      if (stamp !== body.stamp) {
        document.dispatchEvent(new CustomEvent("pullcord:questions", { detail: body }));
      }
      stamp = body.stamp;
    }
  } catch {
    // No connection: the next try is a few seconds away.
  } finally {
    asking = false;
    timer = setTimeout(ask, SECONDS * 1000);
  }
}

if (link) {
  timer = setTimeout(ask, SECONDS * 1000);
  document.addEventListener("pullcord:cord", ask);
  document.addEventListener("visibilitychange", ask);
}
