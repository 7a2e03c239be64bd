"""Who may see a page: routes that turn denials into pages, and the session of a request."""

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from discreet.kernel.errors import Failed, LedgerError, PolicyError, Refused
from discreet.server.errors import AccessDenied, NotAllowed, RateLimited
from discreet.server.pages.rendering import Pages, redirect
from discreet.server.pages.sessions import PageSession
from discreet.server.people.person import Role

COOKIE = "discreet_session"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_STATUS: dict[type[Exception], tuple[int, str]] = {
    NotAllowed: (403, "Not for your role"),
    AccessDenied: (403, "Access denied"),
    RateLimited: (429, "Too many requests"),
    Refused: (422, "Refused"),
    PolicyError: (400, "Not possible"),
    Failed: (500, "Failed after the charge"),
    LedgerError: (503, "The ledger is not available"),
}


class LoginNeeded(Exception):  # noqa: N818 - no error: the next page is the login
    """Nobody is signed in."""


class PageRoute(APIRoute):
    """A route whose denials and errors are pages, too; their texts are those that everybody may see."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler that FastAPI calls."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handle(request)
            except LoginNeeded:
                return redirect(f"/login?next={quote(_wanted(request))}")
            except HTTPException as error:
                return _error_page(request, error.status_code, "This did not work", str(error.detail))
            except tuple(_STATUS) as error:
                status, title = next(value for kind, value in _STATUS.items() if isinstance(error, kind))
                text = "The owner has to look at it." if isinstance(error, LedgerError) else str(error)
                return _error_page(request, status, title, text, error)

        return guarded


def session_of(pages: Pages, *roles: Role) -> Callable[[Request], PageSession]:
    """Return a dependency: the session of a request, if its person has one of the roles, or any by default."""

    def find(request: Request) -> PageSession:
        session = current_session(pages, request)
        if session is None:
            raise LoginNeeded
        if roles and session.person.role not in roles:
            raise NotAllowed(f"role: this page is not for {session.person.role.value}s.")
        return session

    return find


def current_session(pages: Pages, request: Request) -> PageSession | None:
    """Return the session of a request, if somebody is signed in."""
    cookie = request.cookies.get(COOKIE)
    return pages.sessions.find(cookie) if cookie else None


def set_session_cookie(request: Request, response: Response, cookie: str) -> None:
    """Give the browser its session: not for scripts, not for other sites, and over TLS except on loopback."""
    is_secure = request.url.hostname not in _LOOPBACK
    response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=is_secure, path="/")


def safe_path(path: str) -> str:
    r"""Return a path of our own pages; whatever else was asked for, it is the first page.

    >>> safe_path("/budget"), safe_path("//evil.example"), safe_path("/\\evil.example"), safe_path("https://evil.example")
    ('/budget', '/ask', '/ask', '/ask')
    """
    is_own = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if is_own else "/ask"


def _wanted(request: Request) -> str:
    return request.url.path if request.method == "GET" else "/ask"


def _error_page(request: Request, status: int, title: str, text: str, error: Exception | None = None) -> Response:
    pages: Pages = request.app.state.pages
    page = pages.render(request, "error.html", current_session(pages, request), status=status, title=title, text=text)
    if isinstance(error, RateLimited):
        page.headers["Retry-After"] = f"{error.seconds:.0f}"
    return page
