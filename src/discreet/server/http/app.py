"""The application: /health for everybody, /api/v1 for people with a token, and the mounted interfaces."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import APIRouter, FastAPI, Request, Security
from fastapi.security import HTTPBearer
from starlette.responses import PlainTextResponse, Response

import discreet
from discreet.server.errors import NotAllowed
from discreet.server.http import oversight_routes, problem_details, question_routes, release_routes
from discreet.server.http.answer_bodies import AnswerBodies, json_response
from discreet.server.http.gate import Gate
from discreet.server.http.mounts import MOUNTS, Mount
from discreet.server.http.question_routes import person_of, service_of
from discreet.server.people import Role
from discreet.server.service import Service


def create_app(service: Service, mounts: tuple[Mount, ...] = MOUNTS) -> FastAPI:
    """Return the application of a service.

    >>> from discreet.policy import Policy
    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits", "ledger": ":memory:"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v", "unit": "row", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> import pyarrow as pa
    >>> with Service.open(policy, data={"visits": pa.table({"who": [1]})}) as service:
    ...     "/api/v1/ask" in create_app(service).openapi()["paths"]
    True
    """
    contexts: list[object] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for context in contexts:
                await stack.enter_async_context(context)  # type: ignore[arg-type]
            yield

    app = FastAPI(
        title="Discreet",
        version=discreet.__version__,
        summary="Differentially private answers within a budget.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # it would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service, app.state.bodies = service, AnswerBodies()
    problem_details.install(app)
    token, problems = [Security(HTTPBearer(auto_error=False))], problem_details.documented_problems()
    for routes in (question_routes, oversight_routes, release_routes):
        app.include_router(routes.router, prefix="/api/v1", dependencies=token, responses=problems)
    stopped = {"description": "The ledger cannot be written."}
    app.get("/health", tags=["operation"], responses={503: stopped})(_health)
    operation = APIRouter(tags=["operation"], dependencies=token, responses=problems)
    operation.get("/metrics", response_class=PlainTextResponse)(_metrics)
    app.include_router(operation)
    contexts.extend(context for mount in mounts if (context := mount(app, service)) is not None)
    app.add_middleware(Gate, service=service)
    return app


def _health(request: Request) -> Response:
    """Return whether the service can answer; nothing here depends on the data."""
    stopped = getattr(service_of(request).ledger.session, "stop_reason", None)
    return json_response({"status": "stopped" if stopped else "ok"}, 503 if stopped else 200)


def _metrics(request: Request) -> Response:
    """Return counters for Prometheus; for the owner only, because they depend on who asks what."""
    person = person_of(request)
    if person.role is not Role.OWNER:
        raise NotAllowed("metrics: for the owner only.")
    return PlainTextResponse(service_of(request).metrics.text())
