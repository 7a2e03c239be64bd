"""PostgreSQL and Sail: time of a private query compared with COUNT(DISTINCT unit). Rows are an argument.

Of PostgreSQL, CPU time of the server and all its processes counts, whatever else the machine does; of Sail, wall time.
"""

import contextlib
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import discreet as dc
from bench.queries import anew
from bench.scale import DISTINCT, POLICY, Q2
from discreet.engines.duckdb.engine import Tuning
from discreet.engines.spark.connection import apply_settings, new_session
from discreet.postgres.server import connect
from tests.cpu_time import of_process
from tests.servers.postgres import Cluster, binaries
from tests.servers.spark import no_sail, sail

ROUNDS = 5
COUNT = "SELECT city, COUNT(*) AS n FROM sales GROUP BY city"
QUESTIONS = {"counts": COUNT, "Q2": Q2}
BARS = {("PostgreSQL", "counts"): 2.5}
PEOPLE = {"20 rows a person": 1 / 20, "1.4 rows a person": 1.5}  # people to draw from, for each row


def main(rows=1_000_000):
    head = f"{'engine':<12}{'data':<20}{'people':>9}{'question':>10}{'DISTINCT s':>12}{'ours s':>9}"
    print(f"{head}{'times, least to most':>24}", flush=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        engines = []
        if binaries():
            engines.append(on_postgres(stack, stack.enter_context(contextlib.closing(_Closing(Cluster().start())))))
        if not no_sail():
            engines.append(on_sail(stack, folder))
        for name, share in PEOPLE.items():
            table = made(int(rows), share)
            people = len(np.unique(table.column("user")))
            for engine, load, clock in engines:
                distinct, policy = load(table, name)
                for question, sql in QUESTIONS.items():
                    print(f"{engine:<12}{name:<20}{people:>9,}{question:>10}", end="")
                    print(line(*measured(policy, sql, distinct, clock), BARS.get((engine, question))), flush=True)


class _Closing:
    """A cluster that is stopped by closing it."""

    def __init__(self, cluster):
        self.url, self.pid, self.close = cluster.url, cluster.pid, cluster.stop


def made(rows, share):
    """Return sales in no order: a person is in some of 2,000 cities, few of which are large."""
    random = np.random.default_rng(7)
    user = random.integers(0, max(1, int(rows * share)), rows)
    city = (2000 * random.random(rows) ** 3).astype(np.int64)
    category = random.integers(0, 20, rows)
    return pa.table({"user": user, "city": city, "category": category, "amount": random.gamma(2, 40, rows)})


def on_postgres(stack, cluster):
    def load(table, _):
        with connect(cluster.url()) as server:
            server.execute(
                'DROP TABLE IF EXISTS sales; CREATE TABLE sales ("user" bigint, city bigint, category bigint, '
                "amount double precision)"
            )
            with server.cursor().copy("COPY sales FROM STDIN WITH (FORMAT csv)") as copy:
                sink = pa.BufferOutputStream()
                pa.csv.write_csv(table, sink, pa.csv.WriteOptions(include_header=False))
                copy.write(memoryview(sink.getvalue()))
            server.execute("VACUUM ANALYZE sales")
        server = stack.enter_context(contextlib.closing(connect(cluster.url())))
        text = POLICY.format(url=cluster.url(), place="public.sales").replace('"spark"', '"postgresql"')
        sql = DISTINCT.replace("user", '"user"')
        return lambda: server.execute(sql).fetchall(), dc.policy.Policy.parse(text)

    return "PostgreSQL", load, lambda: server_seconds(cluster.pid())


def server_seconds(first):
    """Return the CPU seconds of a server's first process and of all that it started, running or ended."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    running = [pid for pid in pids if parent_of(pid) == first]
    return sum(of_process(pid) for pid in (first, *running))


def parent_of(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended
        return None


def on_sail(stack, folder):
    server = stack.enter_context(sail())
    spark = new_session(server.url)
    stack.callback(spark.stop)
    apply_settings(spark)

    def load(table, name):
        place = folder / f"{name.replace(' ', '-')}.parquet"
        pq.write_table(table, place)
        spark.read.parquet(str(place)).createOrReplaceTempView("sales")
        policy = dc.policy.Policy.parse(POLICY.format(url=server.url, place=place))
        return lambda: spark.sql(DISTINCT).toArrow(), policy

    return "Sail", load, time.perf_counter


def measured(policy, sql, distinct, clock):
    """Ask in turns, so that both meet the same machine; return the seconds of each."""
    with dc.open(policy, tuning=Tuning(totals_cache=0, seconds=3600)) as keeper:
        ask = anew(keeper)
        works = (distinct, lambda: ask(sql, epsilon=1, groups=5, rows=10))
        times = ([], [])
        for turn in range(ROUNDS + 1):
            for work, found in zip(works, times, strict=True):
                began = clock()
                work()
                if turn:  # the first warms up
                    found.append(clock() - began)
    return times


def line(distinct, ours, bar):
    times = sorted(mine / theirs for mine, theirs in zip(ours, distinct, strict=True))
    middle = len(times) // 2
    seconds = f"{sorted(distinct)[middle]:>12.2f}{sorted(ours)[middle]:>9.2f}"
    reached = "" if bar is None else f"  bar {bar}: {'met' if times[middle] <= bar else 'missed'}"
    return f"{seconds}{times[0]:>10.1f} {times[middle]:>6.1f} {times[-1]:>6.1f}{reached}"


if __name__ == "__main__":
    main(*sys.argv[1:])
