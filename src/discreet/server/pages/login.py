"""Signing in with a token, and out again."""

import secrets
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from discreet.server.errors import AccessDenied
from discreet.server.pages.forms import read_form
from discreet.server.pages.guards import COOKIE, PageRoute, current_session, safe_path, session_of, set_session_cookie
from discreet.server.pages.rendering import Pages, redirect
from discreet.server.pages.sessions import PageSession
from discreet.server.people.person import Role

_VISIT = "discreet_visit"  # ties the login form to this browser, before there is a session
_FIRST_PAGE = {Role.AUDITOR: "/budget"}


def login_routes(pages: Pages) -> APIRouter:
    """Return the routes of the login."""
    router = APIRouter(include_in_schema=False, route_class=PageRoute)

    @router.get("/login")
    def show(request: Request) -> Response:
        wanted = safe_path(request.query_params.get("next", "/ask"))
        if (session := current_session(pages, request)) is not None:
            return redirect(_first_page(session, wanted))
        return _login_page(pages, request, wanted)

    @router.post("/login")
    async def sign_in(request: Request) -> Response:
        visit = request.cookies.get(_VISIT, "")
        fields = await read_form(request, pages.sessions.login_form_token(visit))
        wanted, token = safe_path(fields.get("next", "")), fields.get("token", "").strip()
        address = request.client.host if request.client else ""
        try:
            person = pages.service.person_for_token(token, address)
        except AccessDenied as denial:
            return _login_page(pages, request, wanted, problem=str(denial))
        cookie = pages.sessions.begin(person, token)
        session = pages.sessions.find(cookie)
        response = redirect(_first_page(session, wanted) if session else "/login")
        set_session_cookie(request, response, cookie)
        response.delete_cookie(_VISIT, path="/login")
        return response

    @router.post("/logout")
    async def sign_out(request: Request, session: Annotated[PageSession, Depends(session_of(pages))]) -> Response:
        await read_form(request, session.form_token)
        pages.sessions.end(request.cookies[COOKIE])
        response = redirect("/")
        response.delete_cookie(COOKIE, path="/")
        return response

    return router


def _first_page(session: PageSession, wanted: str) -> str:
    return _FIRST_PAGE.get(session.person.role, wanted) if wanted == "/ask" else wanted


def _login_page(pages: Pages, request: Request, wanted: str, problem: str = "") -> Response:
    visit = request.cookies.get(_VISIT) or secrets.token_urlsafe(32)
    page = pages.render(
        request,
        "login.html",
        None,
        status=403 if problem else 200,
        login_token=pages.sessions.login_form_token(visit),
        wanted=wanted,
        problem=problem,
    )
    secure = request.url.hostname not in {"127.0.0.1", "localhost", "::1"}
    page.set_cookie(_VISIT, visit, httponly=True, samesite="strict", secure=secure, path="/login", max_age=3600)
    return page
