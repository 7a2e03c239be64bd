"use strict";
// Light or dark: as the system says, until somebody chooses; the choice stays in this browser.
(() => {
  const root = document.documentElement;
  const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  if (["light", "dark"].includes(stored())) root.dataset.theme = stored();
  addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
      button.hidden = false;
      label();
      button.addEventListener("click", () => {
        root.dataset.theme = isDark() ? "light" : "dark";
        try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a file without storage forgets it */ }
        label();
      });
    }
  });
})();
