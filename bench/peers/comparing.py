"""Q2 put to the peers and to Discreet, each in a process of its own, at a million and at ten million rows."""

import math
from pathlib import Path

import duckdb

from bench import shop
from bench.peers import running

SIZES = ((1_000_000, 50_000, 2), (10_000_000, 500_000, 1))  # rows, people, and how often to ask
SECONDS = 300  # for one script
BARRED = 10_000_000  # the size that the bars are for
CPU_BARS = {"OpenDP": 7, "Qrlew": 8}  # so many times our CPU,
MEMORY_BAR = 3  # so many times our memory,
MOST_MB = 1000  # and ours below this


def main():
    print(f"\n{'Q2, epsilon 1, delta 1e-7':<34}", end="")
    print("".join(f"{name:>9}" for name in ("CPU s", "wall s", "peak MB", "cities", "spread", "RMSE")))
    for rows, people, times in SIZES:
        place = shop.make(Path(".bench"), rows, people)
        write_one(place)
        truth = {
            str(city): count
            for city, count in raw(place).sql("SELECT city, COUNT(*) FROM sales GROUP BY ALL").fetchall()
        }
        ours = None
        for peer in running.PEERS:
            label = f"{peer}, {rows:,} rows"
            try:
                told = running.run(peer, place, rows, times, SECONDS)
            except running.NotMeasuredError as reason:
                print(f"{label:<34}  {reason}", flush=True)
                continue
            ours = ours or told
            print(f"{label:<34}{line(told, truth)}  {told['version']}{beside(peer, told, ours, rows)}", flush=True)
    print("spread: what chance does to a count, from two answers to one question; RMSE: of counts, to the truth")


def line(told, truth):
    counts = told["counts"]
    spread = "-"
    if len(counts) > 1:
        both = counts[0].keys() & counts[1].keys()
        spread = f"{rms({city: counts[0][city] for city in both}, counts[1]) / math.sqrt(2):,.0f}"
    shown = f"{min(told['cpu']):>9.2f}{min(told['wall']):>9.2f}{told['peak']:>9,.0f}{len(counts[0]):>9,}"
    return f"{shown}{spread:>9}{rms(counts[0], truth):>9,.0f}"


def beside(peer, told, ours, rows):
    """Say how a peer compares, and whether the bars are reached."""
    if told is ours:
        return _reached(f"; bar {MOST_MB:,} MB", told["peak"] < MOST_MB, rows)
    cpu, memory = min(told["cpu"]) / min(ours["cpu"]), told["peak"] / ours["peak"]
    said = f"; {cpu:.1f} times our CPU, {memory:.1f} times our memory"
    if peer not in CPU_BARS:
        return said
    bars = f"; bars {CPU_BARS[peer]} and {MEMORY_BAR}"
    return said + _reached(bars, cpu >= CPU_BARS[peer] and memory >= MEMORY_BAR, rows)


def _reached(bar, good, rows):
    return f"{bar}: {'yes' if good else 'short of the bar'}" if rows == BARRED else ""


def rms(one, other):
    """Return the root of the mean squared difference, over the keys of the first."""
    return math.sqrt(sum((one[key] - other[key]) ** 2 for key in one) / max(1, len(one)))


def raw(place):
    """Return DuckDB as it comes, with the two tables."""
    connection = duckdb.connect()
    for table in ("sales", "cities"):
        connection.execute(f"CREATE VIEW {table} AS FROM '{place / table}.parquet'")
    return connection


def variant(place, old, new):
    """Return the table's policy with some words changed."""
    text = (place / "policy.toml").read_text()
    assert old in text
    return text.replace(old, new)


def write_one(place):
    """Write the policy under which one question takes all that is set apart for discovering, as the peers do.

    A question takes a hundredth of it; so it is a hundred times half of 1e-7, beside the other half for converting.
    """
    (place / "one.toml").write_text(variant(place, "delta = 1e-7", 'delta = 5.05e-6\ndiscover = "100/101"'))


if __name__ == "__main__":
    main()
