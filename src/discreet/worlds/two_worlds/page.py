"""The page as one HTML file: what is shown first is written here, the rest is in its JSON."""

import json
import re
from datetime import UTC, datetime
from html import escape
from string import Template
from typing import Any

import discreet
from discreet.html_page import html_document
from discreet.page_assets import hashed_policy, read_asset, shared_style
from discreet.worlds.two_worlds.record import FIRST_SHOWN

_TOKENS = re.compile(
    r"(?P<t>'(?:[^']|'')*')|(?P<n>\b\d+(?:\.\d+)?\b)"
    r"|(?P<k>\b(?:SELECT|FROM|WHERE|GROUP BY|ORDER BY|HAVING|AND|OR|NOT|AS|COUNT|SUM|AVG|JOIN|ON|IN|BETWEEN|LIMIT)\b)"
)


def sql_markup(sql: str) -> str:
    """Return SQL as escaped HTML with marked tokens.

    >>> sql_markup("SELECT 1 < 'a'")
    '<span class="k">SELECT</span> <span class="n">1</span> &lt; <span class="t">&#x27;a&#x27;</span>'
    """
    parts, end = [], 0
    for token in _TOKENS.finditer(sql):
        parts += [escape(sql[end : token.start()]), f'<span class="{token.lastgroup}">{escape(token[0])}</span>']
        end = token.end()
    return "".join([*parts, escape(sql[end:])])


_MARKS = {0: "0.01", 6: "0.1", 12: "1", 16: "no noise"}
_PACKAGE = "discreet.worlds.two_worlds"
_DOT_PITCH = 10


def static_page(record: dict[str, Any]) -> str:
    """Return the page as a file that needs nothing else, with scripts and styles allowed by their hashes."""
    style = shared_style() + page_style()
    scripts = (read_asset("theme.js"), page_script())
    now = datetime.now(UTC)
    body = Template(read_asset("static_page.html", _PACKAGE)).substitute(
        worlds=worlds_html(record),
        record=record_json(record),
        theme=scripts[0],
        script=scripts[1],
        version=escape(discreet.__version__),
        people=f"{record['people']:,}",
        when=f"{now:%Y-%m-%d %H:%M} UTC",
    )
    return html_document(
        "Discreet: one question, two worlds", style, body, content_policy=escape(hashed_policy(style, scripts))
    )


def page_style() -> str:
    """Return the part of the style sheet that only this page needs."""
    return read_asset("two_worlds.css", _PACKAGE)


def page_script() -> str:
    """Return the script of this page."""
    return read_asset("two_worlds.js", _PACKAGE)


def record_json(record: dict[str, Any]) -> str:
    r"""Return the record as JSON that no HTML parser takes for markup.

    >>> record_json({"sql": "a < b"})
    '{"sql":"a \\u003c b"}'
    """
    return json.dumps(record, separators=(",", ":")).replace("<", "\\u003c")


def worlds_html(record: dict[str, Any]) -> str:
    """Return the content of the page at the epsilon that is shown first."""
    index = next(place for place, step in enumerate(record["steps"]) if step["epsilon"] == FIRST_SHOWN)
    step, resident = record["steps"][index], record["residents"][0]
    texts = {
        **step["words"],
        **{name: str(resident[name]) for name in ("name", "age", "ward")},
        **{f"try_{name}": text for name, text in step["tries"][0].items()},
        "true_first": record["true_pair"][0],
        "true_second": record["true_pair"][1],
    }
    first_query, second_query = map(sql_markup, resident["queries"])
    markup = {
        "first": index,
        "last": len(record["steps"]) - 1,
        "meter": 100 * step["attack"],
        "meter_ceiling": 100 * step["ceiling"],
        "marks": "".join(f'<span class="at-{place}">{text}</span>' for place, text in _MARKS.items()),
        "options": "".join(map(_option, record["residents"])),
        "question": sql_markup(record["sql"]),
        "attack_first": first_query,
        "attack_second": _with_person(second_query, resident),
        "wards": "".join(_ward_row(record, step, ward, resident) for ward in record["truth"]),
        "curve_with": _curve(step, "with"),
        "curve_without": _curve(step, "without"),
        "dots_with": _dots(int(step["words"]["with"])),
        "dots_without": _dots(int(step["words"]["without"])),
        "numbers": "".join(map(_numbers_row, record["steps"])),
    }
    escaped = {name: escape(str(text)) for name, text in texts.items()}
    return Template(read_asset("page.html", _PACKAGE)).substitute({**escaped, **markup})


def _option(resident: dict[str, Any]) -> str:
    return f'<option value="{resident["id"]}">{resident["name"]}, {resident["age"]}, {resident["ward"]}</option>'


def _with_person(query: str, resident: dict[str, Any]) -> str:
    """Mark what the script replaces when another person is chosen."""
    ward, age = (str(resident[name]) for name in ("ward", "age"))
    return query.replace(ward, f'<span data-person="ward">{ward}</span>').replace(
        f">{age}<", f'><span data-person="age">{age}</span><'
    )


def _ward_row(record: dict[str, Any], step: dict[str, Any], ward: str, resident: dict[str, Any]) -> str:
    low, high = record["axis"]
    value, truth, margin = step["counts"][ward] - low, record["truth"][ward] - low, step["margin"]
    chart = (
        f'<svg class="interval" viewBox="0 0 {high - low} 24" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="bar" x="{min(value, -low)}" width="{abs(value + low)}" y="3" height="18"></rect>'
        f'<line class="zero" x1="{-low}" x2="{-low}" y1="0" y2="24"></line>'
        f'<line class="whisker" x1="{value - margin}" x2="{value + margin}" y1="12" y2="12"></line>'
        f'<line class="point" x1="{value}" x2="{value}" y1="12" y2="12"></line>'
        f'<line class="truth" x1="{truth}" x2="{truth}" y1="4" y2="20"></line></svg>'
    )
    home = ' class="home"' if ward == resident["ward"] else ""
    return (
        f'<tr data-ward="{escape(ward)}"{home}><th scope="row">{escape(ward)}</th><td class="chart">{chart}</td>'
        f'<td class="number" data-answer>{step["texts"][ward]}</td>'
        f'<td class="number soft">{record["truth"][ward]}</td></tr>'
    )


def _curve(step: dict[str, Any], world: str) -> str:
    bins, top = step["bins"][world], max(*step["bins"]["with"], *step["bins"]["without"])
    heights = [10 * probability / top for probability in bins]
    middle = len(bins) // 2
    bars = "".join(
        f'<rect{" class=yes" if index >= middle else ""} x="{index + 0.06}" y="{10 - height:.4f}" width=".88" '
        f'height="{height:.4f}"></rect>'
        for index, height in enumerate(heights)
    )
    return f'{bars}<line x1="{middle}" x2="{middle}" y1="0" y2="10"></line>'


def _dots(yes: int) -> str:
    """Draw 100 dots, filled from the bottom like a level."""
    return "".join(
        f'<circle{" class=yes" if index < yes else ""} cx="{_DOT_PITCH * (index % 10) + 5}" '
        f'cy="{_DOT_PITCH * (9 - index // 10) + 5}" r="3.7"></circle>'
        for index in range(100)
    )


def _numbers_row(step: dict[str, Any]) -> str:
    cells = "".join(
        f'<td class="number">{escape(step["words"][name])}</td>' for name in ("margin", "right", "attack", "ceiling")
    )
    return f'<tr><th scope="row">{escape(step["words"]["epsilon"])}</th>{cells}</tr>'
