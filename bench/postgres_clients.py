"""The PostgreSQL interface of a running server: stored and fresh answers, its overhead, and idle connections."""

import psycopg

from bench.client_processes import ask_together, show, show_bar, show_overhead

FRESH = "SELECT COUNT(*) AS n FROM people WHERE income > {}"
IDLE = 70  # connections of one person, who may have 100
CONNECT = """
import psycopg
connection = psycopg.connect(arguments["url"], autocommit=True)
def ask(number):
    connection.execute(arguments["sql"].format(number), prepare=arguments["prepare"]).fetchall()
"""


def url_of(server):
    return f"postgresql://ana:{server.token}@127.0.0.1:{server.pg}/?sslmode=disable&options=-cepsilon%3D0.1"


def measure(server, own, sql, load):
    """Print one line for each kind of request, the overhead over the curator, and the memory of idle connections."""
    clients, requests, rounds = load

    def ask(text, number, count, prepare=None):
        return ask_together(server, CONNECT, {"url": url_of(server), "sql": text, "prepare": prepare}, number, count)

    rate, slow = show("pg, stored, simple", [ask(sql, clients, requests) for _ in range(rounds)])
    show_bar("stored answers per second", rate, 300, at_least=True)
    show_bar("99 % of them, ms", slow, 50)
    show("pg, stored, prepared", [ask(sql, clients, requests, prepare=True) for _ in range(rounds)])
    show("pg, stored, one client", [ask(sql, 1, requests // 2) for _ in range(rounds)])
    alone = ask(FRESH, 1, requests // 4)
    show("pg, fresh, one client", [alone])
    show_overhead(alone, own)
    show_bar("memory of an idle connection, kB", idle_bytes(server) / 1e3, 100)


def idle_bytes(server):
    """Return by how much the server grows for each connection that is logged in, has asked, and does nothing more."""
    first = [connected(server) for _ in range(20)]
    before = server.resident_bytes()
    more = [connected(server) for _ in range(IDLE)]
    after = server.resident_bytes()
    for connection in (*first, *more):
        connection.close()
    return (after - before) / len(more)


def connected(server):
    connection = psycopg.connect(url_of(server))
    connection.execute("SELECT 1")
    connection.commit()
    return connection
