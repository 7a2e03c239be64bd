"""A server with pages on loopback, for people of every role, on data whose keys and names are hostile."""

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import uvicorn
from fastapi import FastAPI

from discreet.policy import Policy
from discreet.server.pages.app import add_pages
from discreet.server.people import Role
from discreet.server.service import Service

HOSTILE = "<img src=x onerror=\"document.title='broken'\">"
EVIL_ANALYST = "<script>document.title='broken'</script>"
PEOPLE = 6000


def hostile_policy(folder):
    """Return a policy whose names and values are markup, with groups that the data chooses."""
    return Policy.from_dict(
        {
            "data": {"name": f"clinic {HOSTILE}", "protects": "patient", "ledger": "ledger.sqlite"},
            "budget": {
                "epsilon": 8,
                "delta": 1e-9,
                "analysts": {"ana": {"epsilon": 4}, "ben": {"epsilon": 1}, EVIL_ANALYST: {"epsilon": 1}},
            },
            "server": {"tick": 0, "approval_above": 2},
            "tables": {
                "visits": {
                    "source": "visits",
                    "unit": "who",
                    "groups": 1,
                    "rows": 1,
                    "columns": {
                        "who": {"type": "integer"},
                        "ward": {"type": "text", "in": ["A", "B", HOSTILE]},
                        "note": {"type": "text"},
                        "cost": {"type": "real", "between": [0, 100]},
                    },
                }
            },
        },
        base=folder,
    )


def hostile_data():
    keys = ["A", "B", HOSTILE]
    notes = [HOSTILE, "=1+1", "fine"]
    return pa.table(
        {
            "who": list(range(PEOPLE)),
            "ward": [keys[n % 3] for n in range(PEOPLE)],
            "note": [notes[n // 2000] for n in range(PEOPLE)],
            "cost": [float(n % 100) for n in range(PEOPLE)],
        }
    )


@dataclass(frozen=True)
class Served:
    """A running server: its address, its service, and a token for each name."""

    address: str
    service: Service
    tokens: dict


ROLES = {
    "ana": Role.ANALYST,
    "ben": Role.ANALYST,
    EVIL_ANALYST: Role.ANALYST,
    "Vogel": Role.OWNER,
    "Audrey": Role.AUDITOR,
}


@contextmanager
def opened_service(folder):
    with Service.open(hostile_policy(folder), data={"visits": hostile_data()}) as service:
        yield service, {name: service.people.add(service.ledger, name, role).token for name, role in ROLES.items()}


@contextmanager
def served_pages(folder):
    with opened_service(folder) as (service, tokens):
        app = FastAPI()
        add_pages(app, service)
        server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.02)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield Served(f"http://127.0.0.1:{port}", service, tokens)
        finally:
            server.should_exit = True
            thread.join()
