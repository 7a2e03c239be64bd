"""Mounting the pages on an HTTP app."""

from fastapi import FastAPI

from discreet.server.pages.ask import ask_routes
from discreet.server.pages.attacks import attack_routes
from discreet.server.pages.budget import budget_routes
from discreet.server.pages.login import login_routes
from discreet.server.pages.owner import owner_routes
from discreet.server.pages.releases import release_routes
from discreet.server.pages.rendering import Pages, asset_routes
from discreet.server.pages.sessions import Sessions
from discreet.server.pages.start import start_routes
from discreet.server.service import Service

_ROUTES = (start_routes, login_routes, ask_routes, budget_routes, release_routes, attack_routes, owner_routes)


def add_pages(app: FastAPI, service: Service) -> None:
    """Mount all pages on an app, for the people of a service."""
    pages = Pages(service, Sessions(service.people))
    app.state.pages = pages
    app.include_router(asset_routes())
    for routes in _ROUTES:
        app.include_router(routes(pages))
