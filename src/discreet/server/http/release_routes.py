"""Publications: publish a plan, list releases, download their files."""

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, Response

from discreet.server.http.answer_bodies import exact_numbers, json_response
from discreet.server.http.problem_details import problem_response
from discreet.server.http.question_routes import person_of, service_of
from discreet.server.http.request_bodies import PlanBody
from discreet.server.problem import Problem

_FILE_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # a report runs no script
router = APIRouter(tags=["releases"])
_NOT_FOUND = Problem("not-found", "there is no such release or file. GET /api/v1/releases lists them.")


@router.post("/publish")
async def publish(request: Request, body: PlanBody) -> Response:
    """Publish the tables and synthetic rows of a plan; the owner must approve a plan of an analyst first."""
    release = await service_of(request).publish(person_of(request), body.plan)
    return json_response(
        {
            "release": release.folder.name,
            "title": release.name,
            "tables": sorted(release.tables),
            "synthetic": sorted(release.synthetic),
            "missing": list(release.missing),
            "paid": exact_numbers(release.paid),
        }
    )


@router.get("/releases")
def releases(request: Request) -> Response:
    """Return the names of all releases."""
    return json_response({"releases": list(service_of(request).publications.names())})


@router.get("/releases/{name}")
def files(request: Request, name: str) -> Response:
    """Return the files of a release."""
    found = service_of(request).publications.files(name)
    return json_response({"release": name, "files": list(found)}) if found else problem_response(_NOT_FOUND)


@router.get("/releases/{name}/{file:path}", response_class=FileResponse)
def download(request: Request, name: str, file: str) -> Response:
    """Return a file of a release: a table, the report, the manifest."""
    path = service_of(request).publications.path(name, file)
    if path is None:
        return problem_response(_NOT_FOUND)
    return FileResponse(path, headers={"Content-Security-Policy": _FILE_POLICY})
