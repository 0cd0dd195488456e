// Keeps a part of a page true: <div id data-refresh="/address/" data-refresh-seconds="5"> is asked for again and
// replaced by the answer; with data-refresh-on="questions" also when questions come or are answered.
const DEFAULT_SECONDS = 15;

async function refresh(part) {
  if (document.hidden || busy(part)) return;
  try {
    const answer = await fetch(part.dataset.refresh, { headers: { "HX-Request": "true" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById(part.id);
    const now = document.getElementById(part.id);
    if (!fresh || !now || busy(now) || same(fresh, now)) return;
    const focused = now.contains(document.activeElement) ? path(document.activeElement) : null;
    now.replaceWith(document.importNode(fresh, true));
    if (focused) document.querySelector(focused)?.focus();
  } catch {
    // No connection: the next try is a few seconds away.
  }
}

// Nothing moves under a hand: not while a form is being sent, text is selected, or a mouse button is down.
function busy(part) {
  return part.querySelector("[data-sending]") !== null || pressed || !getSelection().isCollapsed;
}

let pressed = false;
document.addEventListener("pointerdown", () => { pressed = true; });
for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => { pressed = false; });

// Two renderings are the same when they differ in nothing but the form tokens and the words of times.
function same(one, other) {
  const bare = (part) => {
    const copy = part.cloneNode(true);
    copy.querySelectorAll("time").forEach((time) => { time.textContent = ""; time.removeAttribute("title"); });
    copy.querySelectorAll("input[name=csrfmiddlewaretoken]").forEach((input) => input.remove());
    return copy.outerHTML;
  };
  return bare(one) === bare(other);
}

function path(element) {
  const href = element.getAttribute("href");
  if (href) return `a[href="${CSS.escape(href).replaceAll("\\/", "/")}"]`;
  const form = element.closest("form[action]");
  return form ? `form[action="${form.getAttribute("action")}"] button[value="${element.value}"]` : null;
}

for (const { id, dataset } of document.querySelectorAll("[data-refresh]")) {
  const again = () => { const part = document.getElementById(id); if (part) refresh(part); };
  setInterval(again, 1000 * Number(dataset.refreshSeconds ?? DEFAULT_SECONDS));
  if (dataset.refreshOn === "questions") document.addEventListener("pullcord:questions", again);
  document.addEventListener("visibilitychange", again);
}
