"""A curator on a server: the methods of `Curator` over HTTP, with the standard library and Arrow only."""

import json
import ssl
from collections.abc import Mapping
from fractions import Fraction
from http.client import HTTPException, HTTPResponse
from ipaddress import ip_address
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from discreet.answer.model import Answer, Explanation
from discreet.answer.reading import read_answer, read_explanation, read_loss
from discreet.kernel.errors import DiscreetError, Failed, LedgerError, Refused
from discreet.kernel.loss import Budget
from discreet.kernel.numbers import Number
from discreet.policy.declarations import Bound
from discreet.pricing import Margins
from discreet.pricing.remaining_budget import BudgetStatus, RemainingBudget
from discreet.publish.manifest import MANIFEST, verify
from discreet.server.errors import AccessDenied, ApprovalNeeded, NotAllowed, RateLimited

_ARROW = "application/vnd.apache.arrow.stream"
_MAX_BYTES = 1 << 30  # of a response
_SECONDS = 3600.0  # an answer waits for its turn, and for the time limit in strict mode


def remote(url: str, token: str) -> "RemoteCurator":
    """Connect to a server that `discreet serve` runs, with a token of `discreet analyst add`.

    >>> remote("http://127.0.0.1:8080", "dsc_…")
    RemoteCurator('http://127.0.0.1:8080')
    """
    return RemoteCurator(url, token)


class RemoteCurator:
    """Asks, explains and publishes on a server, as the person whose token it has. Created by `discreet.remote`.

    >>> curator = RemoteCurator("https://data.example.org", "dsc_…")
    >>> RemoteCurator("http://data.example.org", "dsc_…")
    Traceback (most recent call last):
    ValueError: url: http:// would send the token unencrypted to another machine. Use https://.
    """

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"url: {url!r} is not the address of a server. Write it as https://data.example.org.")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise ValueError("url: http:// would send the token unencrypted to another machine. Use https://.")
        self._url, self._token = url.rstrip("/"), token
        self._opener: OpenerDirector = build_opener(_NoRedirects, HTTPSHandler(context=ssl.create_default_context()))

    def ask(  # noqa: PLR0913 - as Curator.ask
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        margin: Margins | None = None,
        key: str | None = None,
        groups: Bound | None = None,
        rows: Bound | None = None,
        purpose: str | None = None,
    ) -> Answer:
        """Answer a query at a given cost or within a given margin of error, as `Curator.ask` does."""
        body = _question(sql, epsilon=epsilon, rho=rho, margin=margin, groups=groups, rows=rows)
        content = self._post("ask", body | _present(key=key, purpose=purpose), _ARROW)
        return read_answer(pa.ipc.open_stream(content).read_all())

    def explain(  # noqa: PLR0913 - as Curator.explain
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        margin: Margins | None = None,
        groups: Bound | None = None,
        rows: Bound | None = None,
    ) -> Explanation:
        """Return the cost and the expected margins of error of a query. This is free and reads no private data."""
        body = _question(sql, epsilon=epsilon, rho=rho, margin=margin, groups=groups, rows=rows)
        return read_explanation(json.loads(self._post("explain", body)))

    def budget(self, by: str | None = None) -> BudgetStatus:
        """Return this person's budget; auditors and owners may name an analyst."""
        query = f"?{urlencode({'by': by})}" if by else ""
        return _read_budget(self._get(f"budget{query}")["exact"])

    def tables(self) -> list[dict[str, Any]]:
        """Return the tables that this person may query, with the declarations of their columns."""
        tables: list[dict[str, Any]] = self._get("tables")["tables"]
        return tables

    @property
    def by(self) -> str:
        """The name of the person whose token this is."""
        return str(self._get("me")["name"])

    def publish(self, plan: str | PathLike[str], out: str | PathLike[str]) -> Path:
        """Publish a plan, a file or its text, on the server; download the release into a folder, and verify it."""
        text = plan if isinstance(plan, str) and "\n" in plan else Path(plan).read_text(encoding="utf-8")
        return self.download(json.loads(self._post("publish", {"plan": text}))["release"], out)

    def releases(self) -> list[str]:
        """Return the names of the releases on the server."""
        return list(self._get("releases")["releases"])

    def download(self, name: str, out: str | PathLike[str]) -> Path:
        """Download a release into a new or empty folder, and compare every file with its manifest."""
        folder = Path(out)
        if folder.exists() and any(folder.iterdir()):
            raise ValueError(f"out: {folder} is not empty. Choose another folder.")
        files = self._get(f"releases/{quote(name, safe='')}")["files"]
        for file in sorted(files, key=lambda each: each == MANIFEST):
            target = folder / _safe_path(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self._send(f"releases/{quote(name, safe='')}/{quote(file)}"))
        if problems := verify(folder):
            raise ValueError(f"{name}: the download differs from its manifest: {problems[0]}")
        return folder

    def __repr__(self) -> str:
        return f"RemoteCurator({self._url!r})"

    def _get(self, path: str) -> Any:
        return json.loads(self._send(path))

    def _post(self, path: str, body: Mapping[str, Any], accept: str = "application/json") -> bytes:
        return self._send(path, json.dumps(body).encode(), accept)

    def _send(self, path: str, body: bytes | None = None, accept: str = "*/*") -> bytes:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", "Accept": accept}
        request = Request(f"{self._url}/api/v1/{path}", body, headers)  # noqa: S310 - http and https only, see __init__
        try:
            response: HTTPResponse
            with self._opener.open(request, timeout=_SECONDS) as response:
                return response.read(_MAX_BYTES)
        except HTTPError as error:
            with error:
                raise _error_of(error.read(_MAX_BYTES), error.headers.get("Retry-After")) from None
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            raise LedgerError(
                f"{self._url}: no answer ({reason}). If a question was being asked, it may have been charged. Ask "
                "again with the same key."
            ) from None


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        """Follow no redirect, which would send the token elsewhere."""


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _question(sql: str, *, margin: Margins | None, groups: Bound | None, rows: Bound | None, **cost: Any) -> Any:
    """Return a query for JSON, with exact numbers as texts."""
    margins = {name: str(each) for name, each in margin.items()} if isinstance(margin, Mapping) else margin
    numbers = {name: None if value is None else str(value) for name, value in cost.items()}
    text = None if margins is None or isinstance(margins, dict) else str(margins)
    return {"sql": sql, **_present(**numbers, groups=groups, rows=rows, margin=text or margins)}


def _read_budget(exact: Mapping[str, Mapping[str, str | None]]) -> BudgetStatus:
    total, rest = exact["total"], exact["remaining"]
    delta, discover = Fraction(total["delta"] or 0), Fraction(total["discover"] or 0)
    budget = Budget(Fraction(total["epsilon"] or 0), delta, discover=discover / delta if delta else 0)
    remaining = RemainingBudget(*(Fraction(rest[name] or 0) for name in RemainingBudget._fields))
    return BudgetStatus(budget, read_loss(exact["spent"]), remaining)


def _safe_path(file: str) -> PurePosixPath:
    """Return the path of a file within a folder, whatever a server says."""
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\\" in file or "\0" in file:
        raise ValueError(f"the server named a file outside of its release: {file[:100]!r}")
    return path


def _error_of(content: bytes, retry_after: str | None) -> DiscreetError:
    """Return the error that a server reports; see server/problem.py."""
    try:
        problem = json.loads(content)
        kind, detail = str(problem["type"]).rpartition(":")[2], str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return LedgerError("the server's response is not one of Discreet. Check the address.")
    match kind:
        case "rate-limited":
            return RateLimited(detail, float(retry_after or 1))
        case "approval-needed":
            return ApprovalNeeded(detail, str(problem.get("approval", "")))
        case "access-denied":
            return AccessDenied()
    classes = {"not-allowed": NotAllowed, "failed": Failed, "unavailable": LedgerError}
    return classes.get(kind, Refused)(detail)
