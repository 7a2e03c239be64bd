"""Mounting the pages on an HTTP app."""

from fastapi import FastAPI

from discreet.server.pages.ask import ask_routes
from discreet.server.pages.login import login_routes
from discreet.server.pages.rendering import Pages, asset_routes
from discreet.server.pages.sessions import Sessions
from discreet.server.pages.start import start_routes
from discreet.server.service import Service


def add_pages(app: FastAPI, service: Service) -> None:
    """Mount all pages on an app, for the people of a service."""
    pages = Pages(service, Sessions(service.people))
    app.state.pages = pages
    for router in (asset_routes(), start_routes(pages), login_routes(pages), ask_routes(pages)):
        app.include_router(router)
