"""Real Chromium for the tests of pages: what goes wrong on a page fails the test that opened it."""

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

CHROMIUM = shutil.which("chromium")
PHONE, DESKTOP = {"width": 360, "height": 740}, {"width": 1280, "height": 900}
_WATCH = """
window.found = {violations: [], shift: 0};
document.addEventListener("securitypolicyviolation",
  (event) => found.violations.push(event.violatedDirective + " " + event.blockedURI));
let touched = Infinity;  // what moves after somebody did something is an answer to it, however late it comes
for (const kind of ["pointerdown", "keydown", "input"])
  addEventListener(kind, () => { touched = Math.min(touched, performance.now()); }, {capture: true});
new PerformanceObserver((shifts) => {
  for (const each of shifts.getEntries()) if (each.startTime < touched) found.shift += each.value;
}).observe({type: "layout-shift", buffered: true});
"""


@dataclass
class Watched:
    """A page and what it did that no page may do."""

    page: object
    errors: list = field(default_factory=list)
    requests: list = field(default_factory=list)

    def problems(self):
        found = self.page.evaluate("window.found || {violations: [], shift: 0}")
        # Up to 0.1 is good by the definition of Web Vitals; a busy machine shows parts of a page late.
        shift = [f"layout shift {found['shift']}"] if found["shift"] > 0.1 else []
        return [*self.errors, *found["violations"], *shift]

    def overflow(self):
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@contextmanager
def chromium():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched_page(browser, *, viewport=DESKTOP, scheme="light", scripts=True, **settings):
    context = browser.new_context(viewport=viewport, color_scheme=scheme, java_script_enabled=scripts, **settings)
    try:
        page = context.new_page()
        page.set_default_timeout(15_000)
        watched = Watched(page)
        page.add_init_script(_WATCH)
        page.on("console", lambda message: watched.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: watched.errors.append(str(error)))
        page.on("request", lambda request: watched.requests.append(request.url))
        yield watched
        if scripts:
            found = watched.problems()
            assert not found, found
    finally:
        context.close()


def accessibility_problems(page):
    """Return what axe finds, each as a line with the first element."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    results = axe.Axe().run(page, options={"runOnly": {"type": "tag", "values": tags}})
    return [f"{each['id']}: {each['nodes'][0]['html'][:120]}" for each in results.response["violations"]]
