"use strict";
// Shows one step of the record: all numbers and sentences were computed before, and are only put in their places here.
(() => {
  const root = document.getElementById("two-worlds");
  if (!root) return;
  const record = JSON.parse(document.getElementById("record").textContent);
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const slider = one("#epsilon"), person = one("#person");
  const attack = one(".attack");
  const state = { step: Number(slider.value), person: 0, attack: 1, tries: 0, right: 0 };

  function readFragment() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const step = record.steps.findIndex((each) => each.epsilon === wanted.get("epsilon"));
    const resident = record.residents.findIndex((each) => each.id === wanted.get("person"));
    if (step >= 0) state.step = step;
    if (resident >= 0) state.person = resident;
    state.attack = wanted.get("attack") === "2" ? 2 : 1;
  }

  let waiting = 0;
  function writeFragment() {  // not at every move: browsers limit how often the address may change
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const parts = new URLSearchParams({ epsilon: record.steps[state.step].epsilon, person: record.residents[state.person].id });
      if (state.attack === 2) parts.set("attack", "2");
      history.replaceState(null, "", "#" + parts);
    }, 200);
  }

  const x = (count) => count - record.axis[0];
  function showAnswer(step, resident) {
    for (const row of all("[data-ward]")) {
      const count = step.counts[row.dataset.ward];
      const bar = row.querySelector(".bar"), whisker = row.querySelector(".whisker"), point = row.querySelector(".point");
      bar.setAttribute("x", x(Math.min(0, count)));
      bar.setAttribute("width", Math.abs(count));
      whisker.setAttribute("x1", x(count - step.margin));
      whisker.setAttribute("x2", x(count + step.margin));
      point.setAttribute("x1", x(count));
      point.setAttribute("x2", x(count));
      row.querySelector("[data-answer]").textContent = step.texts[row.dataset.ward];
      row.classList.toggle("home", row.dataset.ward === resident.ward);
    }
  }

  function showWorlds(step, resident) {
    const top = Math.max(...step.bins.with, ...step.bins.without);
    for (const world of ["with", "without"]) {
      const curve = one(`[data-curve="${world}"]`), dots = one(`[data-dots="${world}"]`), yes = Number(step.words[world]);
      curve.querySelectorAll("rect").forEach((bar, index) => {
        const height = 10 * step.bins[world][index] / top;
        bar.setAttribute("y", 10 - height);
        bar.setAttribute("height", height);
      });
      dots.querySelectorAll("circle").forEach((dot, index) => dot.classList.toggle("yes", index < yes));
      dots.setAttribute("aria-label", `${yes} of 100 outsiders say: ${resident.name} is in the data`);
    }
  }

  function showAttack(step) {
    attack.dataset.stage = state.attack;
    const shown = step.tries[(state.tries || 1) - 1], attacked = state.attack === 2;
    for (const cell of all("[data-try]")) cell.textContent = shown[cell.dataset.try];
    one("[data-try=truth]").className = "number " + (shown.right ? "wrong" : "right");
    one("[data-meter-value]").textContent = attacked ? step.words.attacked : "100 of 100";
    one("[data-meter-fill]").setAttribute("width", attacked ? 100 * step.attack : 100);
    for (const end of ["x1", "x2"]) one("[data-meter-ceiling]").setAttribute(end, 100 * step.ceiling);
    const [again, over] = all("[data-attack-buttons] button");
    again.textContent = attacked ? "Attack again" : "Attack it";
    again.disabled = state.tries >= step.tries.length;
    over.disabled = !attacked;
    one("[data-attack-tally]").textContent = attacked ? `${state.right} of ${state.tries} right so far` : "";
  }

  function show() {
    const step = record.steps[state.step], resident = record.residents[state.person];
    slider.value = state.step;
    slider.setAttribute("aria-valuetext", step.words.spoken);
    person.value = resident.id;
    for (const place of all("[data-word]")) place.textContent = step.words[place.dataset.word];
    for (const place of all("[data-person]")) place.textContent = resident[place.dataset.person];
    showAnswer(step, resident);
    showWorlds(step, resident);
    showAttack(step);
  }

  function attackAgain() {
    state.right += record.steps[state.step].tries[state.tries].right ? 1 : 0;
    state.tries += 1;
  }
  function startOver() {
    state.tries = state.right = 0;
    if (state.attack === 2) attackAgain();
  }

  slider.addEventListener("input", () => { state.step = Number(slider.value); startOver(); show(); writeFragment(); });
  person.addEventListener("change", () => { state.person = person.selectedIndex; show(); writeFragment(); });
  for (const button of all("[data-attack]")) {
    button.addEventListener("click", () => {
      const isFirst = state.attack !== 2;
      state.attack = Number(button.dataset.attack);
      if (isFirst || state.attack === 1) startOver();
      else attackAgain();
      show();
      writeFragment();
    });
  }
  one(".dial").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => { readFragment(); startOver(); show(); });
  slider.disabled = person.disabled = false;
  one("[data-attack-buttons]").hidden = false;
  readFragment();
  startOver();
  show();
})();
