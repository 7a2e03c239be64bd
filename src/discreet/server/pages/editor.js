"use strict";
// A textarea with highlighting behind it and suggestions at the cursor; without this script it is a plain textarea.
(() => {
  const TOKENS = /('(?:[^']|'')*'?)|(--[^\n]*)|\b(\d+(?:\.\d+)?)\b|\b(SELECT|FROM|WHERE|GROUP|ORDER|BY|HAVING|AND|OR|NOT|AS|ON|IN|IS|NULL|JOIN|LEFT|RIGHT|INNER|CROSS|BETWEEN|LIKE|ILIKE|LIMIT|DISTINCT|CASE|WHEN|THEN|ELSE|END|WITH|UNION|ALL|EXISTS|OVER|PARTITION|QUALIFY|WITHIN|OPTIONS|DESC|ASC|TRUE|FALSE|COUNT|SUM|AVG|MEDIAN|MIN|MAX|CLIP|FLOOR|ROUND|EXTRACT|DATE_TRUNC|CAST|COALESCE|STDDEV|VARIANCE)\b/gi;
  const CLASSES = ["t", "c", "n", "k"];
  const MOST = 8;

  function paint(pane, text, mark) {
    pane.textContent = "";
    const add = (part, kind, at) => {
      if (!part) return;
      if (mark && at < mark[1] && at + part.length > mark[0]) {  // split at the ends of the marked place
        const from = Math.max(0, mark[0] - at), to = Math.min(part.length, mark[1] - at);
        piece(part.slice(0, from), kind); piece(part.slice(from, to), kind, true); piece(part.slice(to), kind);
      } else piece(part, kind);
    };
    const piece = (part, kind, marked) => {
      if (!part) return;
      const span = document.createElement(marked ? "mark" : "span");
      if (kind) span.className = kind;
      span.textContent = part;
      pane.append(span);
    };
    let end = 0;
    for (const token of text.matchAll(TOKENS)) {
      add(text.slice(end, token.index), "", end);
      add(token[0], CLASSES[token.slice(1).findIndex((group) => group !== undefined)], token.index);
      end = token.index + token[0].length;
    }
    add(text.slice(end), "", end);
    pane.append("\n");
  }

  function caretPosition(pane, text, place) {
    const before = document.createElement("pre"), marker = document.createElement("span");
    before.className = "editor-pane editor-measure";
    before.textContent = text.slice(0, place);
    marker.textContent = "\u200b";
    before.append(marker);
    pane.parentNode.append(before);
    const found = { x: marker.offsetLeft, y: marker.offsetTop + marker.offsetHeight };
    before.remove();
    return found;
  }

  function start(editor) {
    const area = editor.querySelector("textarea");
    const words = JSON.parse(document.getElementById("words").textContent);
    const pane = document.createElement("pre"), list = document.createElement("ul");
    let mark = null, shown = [], active = 0;
    pane.className = "editor-pane";
    pane.setAttribute("aria-hidden", "true");
    list.className = "suggestions";
    list.id = "suggestions";
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Suggestions");
    list.hidden = true;
    editor.prepend(pane);
    editor.append(list);
    editor.classList.add("lively");
    area.setAttribute("aria-autocomplete", "list");
    area.setAttribute("aria-controls", list.id);
    for (const hint of document.querySelectorAll("[data-editor-keys]")) hint.classList.add("shown");

    const fit = () => { area.style.height = "auto"; area.style.height = `${area.scrollHeight + 2}px`; };
    const draw = () => { paint(pane, area.value, mark); fit(); };
    const wordBefore = () => /[\w"]+$/.exec(area.value.slice(0, area.selectionStart))?.[0] ?? "";

    function close() { list.hidden = true; shown = []; area.removeAttribute("aria-activedescendant"); }
    function suggest() {
      const word = wordBefore().toLowerCase();
      const isInText = (area.value.slice(0, area.selectionStart).match(/'/g) || []).length % 2;
      const found = word.length && !isInText ? words.filter(([text]) => text.toLowerCase().startsWith(word) && text.toLowerCase() !== word) : [];
      if (!found.length) return close();
      found.sort((a, b) => (a[1] === "keyword") - (b[1] === "keyword"));
      shown = found.slice(0, MOST);
      active = 0;
      list.textContent = "";
      shown.forEach(([text, kind], index) => {
        const item = document.createElement("li"), note = document.createElement("span");
        item.id = `suggestion-${index}`;
        item.setAttribute("role", "option");
        item.textContent = text;
        note.textContent = kind;
        item.append(note);
        item.addEventListener("mousedown", (event) => { event.preventDefault(); active = index; accept(); });
        list.append(item);
      });
      const at = caretPosition(pane, area.value, area.selectionStart - word.length);
      list.style.left = `${Math.max(0, Math.min(at.x, editor.clientWidth - 260))}px`;
      list.style.top = `${at.y + 4}px`;
      list.hidden = false;
      choose(0);
    }
    function choose(index) {
      active = (index + shown.length) % shown.length;
      [...list.children].forEach((item, place) => item.setAttribute("aria-selected", place === active));
      area.setAttribute("aria-activedescendant", `suggestion-${active}`);
    }
    function accept() {
      const word = wordBefore(), end = area.selectionStart, text = shown[active][0];
      area.setRangeText(text + (/[( ]$/.test(text) ? "" : " "), end - word.length, end, "end");
      close();
      area.dispatchEvent(new Event("input", { bubbles: true }));
      close();
    }

    area.addEventListener("input", () => { mark = null; draw(); suggest(); });
    area.addEventListener("blur", close);
    area.addEventListener("click", close);
    area.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "Enter") { area.form.requestSubmit(); return; }
      if (list.hidden) return;
      const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (move) choose(active + move);
      else if (event.key === "Enter") accept();
      else if (event.key === "Escape") close();
      else return;
      event.preventDefault();
    });
    editor.addEventListener("place", (event) => { mark = event.detail; draw(); });
    draw();
  }

  for (const editor of document.querySelectorAll("[data-editor]")) start(editor);
  for (const block of document.querySelectorAll("[data-sql]")) paint(block, block.textContent.trimEnd(), null);
})();
