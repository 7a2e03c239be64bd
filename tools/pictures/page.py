"""The picture of the interactive page: taken in Chromium, with few colours, so that it is small."""

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from discreet.worlds.two_worlds.page import static_page
from discreet.worlds.two_worlds.record import build_record

NAME = "page.png"
_SIZE = {"width": 1240, "height": 925}
_SCALE = 1.5  # so that text is sharp on most screens
_COLOURS = 160


def draw_page(folder: Path) -> Path:
    """Write the page, load it and save what is seen first; FileNotFoundError without Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise FileNotFoundError(2, "missing", "chromium")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        page_file = Path(temporary) / "page.html"
        page_file.write_text(static_page(build_record()), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=_SIZE, device_scale_factor=_SCALE, color_scheme="light")
        page.goto(page_file.as_uri())
        picture = page.screenshot()
        browser.close()
    few_colours = Image.open(io.BytesIO(picture)).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    path = folder / NAME
    few_colours.save(path, optimize=True)
    return path
