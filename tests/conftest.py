"""Property tests and noise are the same in every run, however slow the machine: a failure is never a matter of luck."""

import os

# Before numpy is loaded: two workers whose arithmetic has two threads each wait for one another, fifty times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same")

import gc  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]  # helpers of tests, and tools

from cpu_time import CpuTime, of_process  # noqa: E402
from servers import spark as spark_servers  # noqa: E402
from servers.postgres import Cluster, binaries  # noqa: E402

HERE = Path(__file__).parent
CPU = CpuTime()
LONG_EXAMPLES = {  # of src: an example cannot carry a marker
    "discreet.attacks.aggregates.census.census",
    "discreet.attacks.models.attributes.attributes",
    "discreet.attacks.models.invert.invert",
    "discreet.attacks.models.likelihood_ratio.likelihood_ratio",
    "discreet.attacks.models.lone_cluster.lone_cluster",
    "discreet.attacks.models.overfitting.overfitting",
    "discreet.attacks.models.shadow.shadow",
    "discreet.attacks.queries.averaging.averaging",
    "discreet.attacks.queries.rephrasing.rephrasing",
    "discreet.attacks.tables.pseudonyms.pseudonyms",
    "discreet.audit.black_box.measure",
    "discreet.audit.policy.audit.audit_policy",
    "discreet.audit.policy.curator_pairs.open_curator_pairs",
    "discreet.engines.postgres.text_functions.like_any_case",
    "discreet.engines.postgres.text_functions.upper",
    "discreet.curator.open.open_curator",  # the first in its process, which loads everything
    "discreet.engines.postgres.text_functions.lower",
}
REAL_NOISE = (HERE / "kernel" / "noise", HERE / "slow")  # where random bytes, and what comes of very many, are tested


def pytest_configure(config):
    config.pluginmanager.register(CPU)  # not a hook of this file: those do not see the examples of src


def pytest_ignore_collect(collection_path, config):
    """Leave out the files of `make slow` where none of their tests would run: importing them takes seconds."""
    if "not slow" in config.option.markexpr and collection_path == HERE / "slow":
        return True
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Look for examples in src only."""
    return [found for found in (yield) if type(found) is pytest.Module]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Let `long` mean some cases of a test only, if it names them: long(only=[…]), or all others: long(but=[…])."""
    for item in items:
        if item.name in LONG_EXAMPLES:
            item.add_marker("long")
        mark, case = item.get_closest_marker("long"), getattr(item, "callspec", None)
        if mark is not None and mark.kwargs and case is not None:
            named = case.id in mark.kwargs.get("only", mark.kwargs.get("but"))
            if named != ("only" in mark.kwargs):
                item.own_markers.remove(mark)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    gc.disable()  # nearly everything that is allocated now stays
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    gc.freeze()  # thousands of tests that are never garbage need not be looked through again and again


def pytest_sessionfinish():
    gc.unfreeze()  # or extension modules report what was not freed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Let noise be the same in every run: no test fails by chance, and what fails does so again."""
    if any(item.path.is_relative_to(folder) for folder in REAL_NOISE):
        return (yield)
    from seeded_noise import seeded  # not above: it takes seconds, and the process that runs no tests needs none of it

    with seeded():
        return (yield)


@pytest.fixture(scope="session")
def postgres():
    """Give a private PostgreSQL that all tests of this process share; each makes a database of its own."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'discreet[postgres]'")
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt install postgresql)")
    cluster = Cluster().start()
    yield cluster
    CPU.apart += of_process(cluster.pid())
    cluster.stop()


@pytest.fixture(scope="session")
def sail():
    """Give a private server that speaks Spark's protocol, which all tests of this process share; `url` is where."""
    if spark_servers.no_sail():
        pytest.skip(spark_servers.no_sail())
    with spark_servers.sail() as server:
        yield server
