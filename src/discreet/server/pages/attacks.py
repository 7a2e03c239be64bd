"""The course's attacks: what each infers without a defence, behind an easy fix, and from private answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from discreet.attacks.result import percent
from discreet.page_assets import read_asset
from discreet.server.pages.guards import PageRoute, session_of
from discreet.server.pages.rendering import Pages
from discreet.server.pages.sessions import PageSession

_GROUPS = {
    "tables": "Released tables",
    "queries": "Answered queries",
    "aggregates": "Published totals",
    "models": "Models",
}
_DEFENCES = {"nothing": "No defence", "easy": "Easy fix", "curator": "Discreet"}


@dataclass(frozen=True)
class DefenceBar:
    """How well an attack does against one defence; shares are in percent."""

    kind: str
    label: str
    released: str
    text: str
    success: float
    interval: tuple[float, float]  # 95 %
    baseline: float
    ceiling: float | None
    ceiling_text: str


@dataclass(frozen=True)
class AttackCard:
    """One attack with its bars."""

    name: str
    title: str
    summary: str
    data: str
    metric: str
    bars: tuple[DefenceBar, ...]


def attack_routes(pages: Pages) -> APIRouter:
    """Return the route of the attacks."""
    router = APIRouter(include_in_schema=False, route_class=PageRoute)

    @router.get("/attacks")
    def show(request: Request, session: Annotated[PageSession, Depends(session_of(pages))]) -> Response:
        return pages.render(request, "attacks.html", session, groups=attack_groups())

    return router


@cache
def attack_groups() -> tuple[tuple[str, tuple[AttackCard, ...]], ...]:
    """Return all attacks as they were measured, by what they attack.

    >>> [title for title, cards in attack_groups()]
    ['Released tables', 'Answered queries', 'Published totals', 'Models']
    """
    record = json.loads(read_asset("attack_record.json", "discreet.server.pages"))
    return tuple(
        (title, tuple(_card(each) for each in record if each["group"] == group)) for group, title in _GROUPS.items()
    )


def _card(attack: Mapping[str, Any]) -> AttackCard:
    title = attack["name"].replace("_", " ").capitalize()
    bars = tuple(map(_bar, attack["results"]))
    return AttackCard(attack["name"], title, attack["summary"], attack["data"], attack["metric"], bars)


def _bar(result: Mapping[str, Any]) -> DefenceBar:
    label = _DEFENCES[result["defence"]] + (f", ε {result['epsilon']}" if result["epsilon"] else "")
    ceiling = result["ceiling"]
    return DefenceBar(
        result["defence"],
        label,
        result["released"],
        percent(result["success"]),
        round(100 * result["success"], 2),
        (round(100 * result["low"], 2), round(100 * result["high"], 2)),
        round(100 * result["baseline"], 2),
        None if ceiling is None else round(100 * ceiling, 2),
        "" if ceiling is None else percent(ceiling),
    )
