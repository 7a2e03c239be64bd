"""Serve the simulated town for trying things out, with fresh tokens and a fresh budget: `make serve`.

    python -m tools.serve_town [ADDRESS OF HTTP] [ADDRESS OF POSTGRESQL]

The people of the town are invented, so its folder .town is written anew every time.
"""

import shutil
import socket
import sys
from pathlib import Path

from discreet.cli import app
from discreet.curator.ledger_location import open_or_create_ledger
from discreet.policy import Policy
from discreet.server.people import People, Role
from discreet.server.tls import ListenAddress
from discreet.worlds.town import POLICY, write_town

FOLDER = Path(__file__).resolve().parent.parent / ".town"
ANALYSTS = """
[budget.analysts]
ana = { epsilon = 4.0, each = 0.05 }
ben = { epsilon = 2.0, each = 0.05 }

[server]
approval_above = 1.0
"""
PEOPLE = {"ana": Role.ANALYST, "ben": Role.ANALYST, "audit office": Role.AUDITOR, "mayor": Role.OWNER}
HOW_TO = """\
Tokens of this run, which is on invented people:
{tokens}

In a browser: {url} (nothing to sign in for on the first page; the others ask for a token)

export TOKEN={ana}

curl -s {url}/api/v1/ask -H "Authorization: Bearer $TOKEN" -H "Accept: text/csv" \\
  -d '{{"sql": "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward", "epsilon": "0.1"}}'

PGPASSWORD="$TOKEN" psql "host={pg.host} port={pg.port} user=ana dbname=town" \\
  -c "SELECT ward, AVG(age) AS a FROM people GROUP BY ward"

.venv/bin/python -c 'import discreet as dc, os; curator = dc.remote("{url}", os.environ["TOKEN"])
print(curator.ask("SELECT AVG(income) AS a FROM people", epsilon="0.1"))'
"""


def refuse_taken(address: ListenAddress) -> None:
    """End with a hint if something listens at an address already."""
    with socket.socket() as probe:
        if probe.connect_ex((address.host, address.port)) == 0:
            sys.exit(f"Something listens at {address}. Stop it, or run: python -m tools.serve_town 8081 5434")


def main() -> None:
    """Write the town, issue tokens, say how to connect, and serve."""
    http, pg = (ListenAddress.parse(address, "address") for address in sys.argv[1:] or ("8080", "5433"))
    for address in (http, pg):
        refuse_taken(address)  # before the folder of a server that is running is removed
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(mode=0o700)
    path = write_town(FOLDER)
    path.write_text(POLICY.replace("\n[tables.people]", f"{ANALYSTS}\n[tables.people]", 1), encoding="utf-8")
    policy = Policy.load(path)
    with open_or_create_ledger(policy) as ledger:
        tokens = {name: People(policy).add(ledger, name, role).token for name, role in PEOPLE.items()}
    shown = "\n".join(f"  {name:<13}{role.value:<9}{tokens[name]}" for name, role in PEOPLE.items())
    print(HOW_TO.format(tokens=shown, ana=tokens["ana"], url=f"http://{http}", pg=pg), flush=True)
    app(["serve", str(path), "--http", str(http), "--pg", str(pg)])


if __name__ == "__main__":
    main()
