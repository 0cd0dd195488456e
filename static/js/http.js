// Asking the server from a script: one way to post, one way to tell people what came of it.
export function csrf() {
  const headers = document.body.getAttribute("hx-headers:inherited");
  if (headers) return JSON.parse(headers)["X-CSRFToken"];
  return document.querySelector("input[name=csrfmiddlewaretoken]")?.value ?? "";
}

// A name for one act of this tab: sent again after a lost answer, nothing happens twice.
export function newOp() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  const id = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  tell("op", { op_id: id });
  return id;
}

export function tell(name, detail = {}) {
  document.dispatchEvent(new CustomEvent(`pullcord:${name}`, { detail }));
}

export function toast(text, level = "info", action = null) {
  tell("toast", { text, level, action });
}

export function announce(text) {
  const region = document.getElementById("announcer");
  if (region) region.textContent = text;
}

// Returns { ok, status, body }. Never throws: without a connection, status is 0 and body says so.
export async function post(url, data) {
  const form = data instanceof FormData ? data : new FormData();
  if (form !== data) for (const [name, value] of Object.entries(data)) form.set(name, value ?? "");
  if (!form.get("op_id")) form.set("op_id", newOp());
  try {
    const answer = await fetch(url, {
      method: "POST",
      body: new URLSearchParams(form),
      headers: { Accept: "application/json", "X-CSRFToken": csrf() },
    });
    const isJson = answer.headers.get("Content-Type")?.includes("json");
    const body = isJson ? await answer.json() : { message: "The server answered in a way that makes no sense here." };
    return { ok: answer.ok && isJson, status: answer.status, body };
  } catch {
    return { ok: false, status: 0, body: { message: "Not saved: the server cannot be reached. Try again." } };
  }
}
