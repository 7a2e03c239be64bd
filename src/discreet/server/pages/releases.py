"""What was published: tables with their margins, the report, all files, and publishing a plan."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.parquet as pq
from fastapi import APIRouter, Depends, HTTPException, Request, Response

from discreet.answer.model import Answer, Cost
from discreet.kernel.errors import PolicyError, Refused
from discreet.kernel.loss import ZERO_LOSS
from discreet.publish.manifest import MANIFEST, verify
from discreet.publish.plan import PublicationPlan
from discreet.server.pages.answer_view import AnswerView
from discreet.server.pages.downloads import attachment
from discreet.server.pages.forms import read_form
from discreet.server.pages.guards import PageRoute, session_of
from discreet.server.pages.rendering import HEADERS, Pages, redirect
from discreet.server.pages.sessions import PageSession
from discreet.server.people.person import Role

_REPORT, _PLAN = "report.html", "plan.toml"
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; sandbox"
_MAX_TABLES = 20  # that a page shows; the others can be downloaded
_MARGIN, _SUFFIXES = "_margin", ("_margin", "_whole", "_bias", "_bias_low", "_noise_margin", "_sampling_margin")


@dataclass(frozen=True)
class ReleasedTable:
    """A table of a publication as a page shows it."""

    name: str
    view: AnswerView


def release_routes(pages: Pages) -> APIRouter:
    """Return the routes of publications."""
    router = APIRouter(include_in_schema=False, route_class=PageRoute)
    Anybody = Annotated[PageSession, Depends(session_of(pages))]  # noqa: N806 - a type
    Publishing = Annotated[PageSession, Depends(session_of(pages, Role.ANALYST, Role.OWNER))]  # noqa: N806 - a type

    @router.get("/releases")
    def show(request: Request, session: Anybody) -> Response:
        return _list_page(pages, request, session)

    @router.post("/releases/forecast")
    async def dry_run(request: Request, session: Publishing) -> Response:
        return await _forecast(pages, request, session)

    @router.post("/releases")
    async def publish(request: Request, session: Publishing) -> Response:
        return await _publish(pages, request, session)

    @router.get("/releases/{name}")
    def show_release(request: Request, session: Anybody, name: str) -> Response:
        return _release_page(pages, request, session, name)

    @router.get("/releases/{name}/files/{file:path}")
    def download(session: Anybody, name: str, file: str) -> Response:
        del session
        path = pages.service.publications.path(name, file)
        if path is None:
            raise HTTPException(404, "there is no such file in this release.")
        return _file(path, file)

    return router


def _file(path: Path, file: str) -> Response:
    """Return a file to save; the report is shown, by rules of its own, without scripts."""
    if file == _REPORT:
        headers = HEADERS | {"Content-Security-Policy": _REPORT_POLICY}
        return Response(path.read_bytes(), media_type="text/html; charset=utf-8", headers=headers)
    return attachment(path.read_bytes(), path.name, "application/octet-stream")


async def _forecast(pages: Pages, request: Request, session: PageSession) -> Response:
    plan = (await read_form(request, session.form_token)).get("plan", "")
    service, person = pages.service, session.person
    try:
        lines = await service.run_light(person, lambda: service.forecast(person, plan).lines())
    except (Refused, PolicyError) as error:
        return _list_page(pages, request, session, status=422, plan=plan, problem=str(error))
    return _list_page(pages, request, session, plan=plan, lines=lines)


async def _publish(pages: Pages, request: Request, session: PageSession) -> Response:
    plan = (await read_form(request, session.form_token)).get("plan", "")
    try:
        release = await pages.service.publish(session.person, plan)
    except (Refused, PolicyError) as error:
        return _list_page(pages, request, session, status=422, plan=plan, problem=str(error))
    return redirect(f"/releases/{release.folder.name}")


def _list_page(pages: Pages, request: Request, session: PageSession, *, status: int = 200, **context: Any) -> Response:
    publications = pages.service.publications
    titles = [(name, _title(publications.path(name, _PLAN), name)) for name in publications.names()]
    defaults: dict[str, Any] = {"plan": "", "lines": (), "problem": ""}
    return pages.render(
        request,
        "releases.html",
        session,
        status=status,
        releases=titles,
        can_publish=session.person.role is not Role.AUDITOR,
        **{**defaults, **context},
    )


def _title(plan: Path | None, name: str) -> str:
    try:
        return PublicationPlan.parse(plan.read_text(encoding="utf-8")).release.name if plan else name
    except (OSError, ValueError, Refused):
        return name


def _release_page(pages: Pages, request: Request, session: PageSession, name: str) -> Response:
    publications = pages.service.publications
    files, manifest = publications.files(name), publications.path(name, MANIFEST)
    if manifest is None:
        raise HTTPException(404, "there is no such release.")
    folder = manifest.parent
    tables = [file for file in files if file.startswith("tables/") and file.endswith(".parquet")]
    return pages.render(
        request,
        "release.html",
        session,
        name=name,
        title=_title(publications.path(name, _PLAN), name),
        files=files,
        has_report=_REPORT in files,
        problems=verify(folder),
        tables=[
            ReleasedTable(Path(file).stem, table_view(pq.read_table(folder / file))) for file in tables[:_MAX_TABLES]
        ],
        hidden=max(0, len(tables) - _MAX_TABLES),
    )


def table_view(table: pa.Table) -> AnswerView:
    """Return a published table as a page shows it: numbers with the margins of the columns after them.

    >>> view = table_view(pa.table({"ward": ["A"], "n": [10.0], "n_margin": [3.0], "n_whole": [10]}))
    >>> [column.name for column in view.columns], view.rows[0][1].text
    (['ward', 'n'], '~10.0 ± 3.0')
    """
    noisy = [name for name in table.column_names if f"{name}{_MARGIN}" in table.column_names]
    hidden = {f"{name}{suffix}" for name in noisy for suffix in _SUFFIXES}
    shown = table.select([name for name in table.column_names if name not in hidden]).replace_schema_metadata(None)
    margins = {name: table.column(f"{name}{_MARGIN}").to_pylist() for name in noisy}
    return AnswerView.of_answer(Answer(shown, margins, dict.fromkeys(noisy, ""), Cost(ZERO_LOSS), None))
