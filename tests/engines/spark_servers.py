"""Sail on a chosen port, so that it can be killed and restarted, and questions that never end."""

import sys

from tests.servers import spark as servers

FOREVER = "SELECT a.id AS x FROM range(1000000000) AS a JOIN range(1000000000) AS b ON hash(a.id) = hash(b.id, 3)"


def sail_at(port=0):
    """Start Sail at a port."""
    server = servers.Server()
    try:
        script = servers._SAIL.replace('("127.0.0.1", 0)', f'("127.0.0.1", {port})')
        assert f", {port})" in script
        place = server.begin([sys.executable, "-c", script])
        server.url = "sc://" + server.heard(place, r"Sail started at: (\S+)\n")
    except BaseException:
        server.stop()
        raise
    return server


def again(server):
    """Start Sail where it was before it died."""
    port = int(server.url.rpartition(":")[2])
    server.stop()
    return sail_at(port)


def shared(url, **views):
    """Make views that all sessions of the server see as global_temp.name."""
    with servers.session(url) as spark:
        for name, sql in views.items():
            spark.sql(f"CREATE OR REPLACE GLOBAL TEMP VIEW {name} AS {sql}").toArrow()
