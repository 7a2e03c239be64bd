"use strict";
// The forecast while typing: the server computes it, as it does for the button that works without this script.
(() => {
  const form = document.getElementById("question"), panel = document.querySelector("[data-forecast]");
  if (!form || !panel) return;
  const area = form.elements.sql, editor = form.querySelector("[data-editor]");
  let waiting = 0, running = null;

  function place() {
    const refused = panel.querySelector("[data-refused]");
    const detail = refused ? [Number(refused.dataset.start), Number(refused.dataset.end)] : null;
    editor.dispatchEvent(new CustomEvent("place", { detail }));
    for (const where of panel.querySelectorAll(".pointed")) where.hidden = true;  // the editor shows it
  }

  async function forecast() {
    running?.abort();
    running = new AbortController();
    panel.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch("/ask/forecast", {
        method: "POST", body: new URLSearchParams(new FormData(form)), headers: { "X-Fragment": "1" },
        signal: running.signal, credentials: "same-origin", redirect: "error",
      });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      panel.replaceChildren(...page.body.childNodes);
      place();
    } catch { /* superseded, or the server is away: the button still works */ } finally { panel.removeAttribute("aria-busy"); }
  }
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(forecast, 350); };

  form.addEventListener("input", soon);
  form.addEventListener("submit", (event) => {
    if (event.submitter?.hasAttribute("data-use")) return;
    const button = form.querySelector("[data-ask]");
    if (!event.submitter || event.submitter === button) setTimeout(() => { button.disabled = true; button.textContent = "Asking …"; });
  });
  panel.addEventListener("click", (event) => {
    const use = event.target.closest("[data-use]");
    if (!use) return;
    event.preventDefault();
    area.value = use.value;
    area.dispatchEvent(new Event("input", { bubbles: true }));
    area.focus();
    forecast();
  });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  form.querySelector("[data-forecast-button]").hidden = true;
  place();
})();
