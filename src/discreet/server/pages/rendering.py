"""How pages are rendered: templates, headers, and the files of styles and scripts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

import discreet
from discreet.page_assets import read_asset, shared_style
from discreet.policy.guarantee import pluralise, protected_noun
from discreet.server.pages.sessions import PageSession, Sessions
from discreet.server.people.person import Role
from discreet.server.service import Service
from discreet.worlds.two_worlds.page import page_script, page_style

_PACKAGE = "discreet.server.pages"
_YEAR = 365 * 24 * 3600
CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Place:
    """A page that everybody with one of these roles finds in the navigation."""

    path: str
    title: str
    roles: frozenset[Role]


_ALL = frozenset(Role)
PLACES = (
    Place("/ask", "Ask", frozenset({Role.ANALYST, Role.OWNER})),
    Place("/budget", "Budget", _ALL),
    Place("/releases", "Releases", _ALL),
    Place("/attacks", "Attacks", _ALL),
    Place("/owner", "Owner", frozenset({Role.OWNER})),
)


@dataclass(frozen=True)
class Pages:
    """What all pages share: the service, who is signed in, and the templates."""

    service: Service
    sessions: Sessions

    def render(
        self, request: Request, template: str, session: PageSession | None, *, status: int = 200, **context: Any
    ) -> HTMLResponse:
        """Return a page; every text is escaped unless a template says otherwise."""
        text = _templates().get_template(template).render(**self._common(request, session), **context)
        return HTMLResponse(text, status_code=status, headers=HEADERS)

    def _common(self, request: Request, session: PageSession | None) -> dict[str, Any]:
        policy = self.service.policy
        return {
            "path": request.url.path,
            "session": session,
            "person": session.person if session else None,
            "form_token": session.form_token if session else "",
            "places": [place for place in PLACES if session and session.person.role in place.roles],
            "data_name": policy.data.name,
            "noun": protected_noun(policy),
            "nouns": pluralise(protected_noun(policy)),
            "asset": asset_address,
            "version": discreet.__version__,
        }


def redirect(path: str) -> RedirectResponse:
    """Send the browser to another of our pages, with GET."""
    return RedirectResponse(path, status_code=303, headers=HEADERS)


def asset_routes() -> APIRouter:
    """Return the route of styles and scripts, whose addresses change with their content."""
    router = APIRouter(include_in_schema=False)

    @router.get("/assets/{name}")
    def asset(name: Annotated[str, Path(max_length=100)]) -> Response:
        if name not in _ASSETS:
            return PlainTextResponse("There is no such file.", status_code=404, headers=HEADERS)
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        caching = {"Cache-Control": f"public, max-age={_YEAR}, immutable"}
        return Response(asset_text(name), media_type=f"{kind}; charset=utf-8", headers=HEADERS | caching)

    return router


@cache
def asset_text(name: str) -> str:
    """Return a style sheet or a script that pages may load.

    >>> "color-scheme" in asset_text("pages.css")
    True
    """
    return _ASSETS[name]()


@cache
def asset_address(name: str) -> str:
    """Return the address of a style sheet or script, with its hash.

    >>> asset_address("theme.js").startswith("/assets/theme.js?v=")
    True
    """
    return f"/assets/{quote(name)}?v={sha256(asset_text(name).encode()).hexdigest()[:16]}"


_ASSETS: dict[str, Callable[[], str]] = {
    "pages.css": lambda: shared_style() + read_asset("pages.css", _PACKAGE),
    "two_worlds.css": page_style,
    "theme.js": lambda: read_asset("theme.js"),
    "two_worlds.js": page_script,
    "editor.js": lambda: read_asset("editor.js", _PACKAGE),
    "ask.js": lambda: read_asset("ask.js", _PACKAGE),
    "actions.js": lambda: read_asset("actions.js", _PACKAGE),
}


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader(_PACKAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
