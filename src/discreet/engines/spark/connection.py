"""Connect to a Spark Connect server: its URL, encryption, and the settings of the session.

The URL is sc://host:port. The token is given only in the environment, as
SPARK_REMOTE=sc://host:port/;use_ssl=true;token=…, and never appears in an error. Neither do the server's own messages,
which may quote the token or values of the data.
"""

import ipaddress
import os
import re
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.table_source import EngineError
from discreet.kernel.errors import PolicyError

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

# Without these settings, the kernel's SQL and the reading of files would have another meaning, or might fail.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",  # else Spark may fail on ancient dates
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "true",  # else an undeclared column makes the whole file unreadable
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.respectSummaryFiles": "false",  # else files without a summary have no columns
    "spark.sql.parser.quotedRegexColumnNames": "false",  # else a name in backticks is a regular expression
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # partition columns are text
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.unionOutputPartitioning": "false",  # else Spark 4.2 may return groups of a UNION twice
    "spark.sql.variable.substitute": "false",
}
# Only performance depends on these. Smaller partitions after a shuffle balance the load, and sorts are smaller.
_PERFORMANCE_SETTINGS = {"spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m"}
_VERBOSE_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")  # the client's: they log server messages
_MARKER_SETTING = "spark.sql.variable.substitute"  # true by default, so a new session is recognised by it
_MIN_VERSION = 4
_RETRY_TIMEOUT = 5.0  # seconds for which requests to an unresponsive server are retried
_ERROR_NAME = re.compile(r"[A-Z][A-Z0-9_.]*")  # error conditions, such as CAST_INVALID_INPUT
_URL_PATTERN = re.compile(r"sc://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(?:/(?:;(.*))?)?", re.DOTALL)
_CLIENT_MISSING = "Spark: the client is not installed. Run: pip install 'discreet[spark]'"
_LOST_MARKERS = ("OPERATION_CANCELED", "INVALID_HANDLE", "operation not found")  # the last is Sail's
_INVALID_URL = "Spark: invalid URL. Write sc://host:15002."


def server_url(url: str | None) -> str:
    """Return the URL of the server, from the argument or SPARK_REMOTE; warn if the connection is not encrypted.

    >>> server_url("spark://host")
    Traceback (most recent call last):
    discreet.kernel.errors.PolicyError: Spark: invalid URL. Write sc://host:15002.
    """
    server = url or os.environ.get("SPARK_REMOTE")
    if not server:
        raise PolicyError(
            'Spark: no server is configured. Add connection = "sc://host:15002" to [data], or set SPARK_REMOTE.'
        )
    host, _, options = _parse_url(server)
    if not (_is_local(host) or options.get("use_ssl", "").lower() == "true" or options.get("token")):
        warnings.warn(
            f"{server_name(server)}: the connection is not encrypted, so the data can be read and changed in transit. "
            f"Write sc://{host}:15002/;use_ssl=true, and install a certificate on the server.",
            stacklevel=3,
        )
    return server


def server_name(url: str) -> str:
    """Return a server's host and port, without user and token.

    >>> server_name("sc://lake.example:443/;use_ssl=true;token=secret")
    'Spark at lake.example:443'
    """
    host, port, _ = _parse_url(url)
    return f"Spark at {host}:{port}"


def has_our_settings(spark: "SparkSession") -> bool:
    """Whether the server still has the session with our settings."""
    with suppress(Exception):
        return spark.conf.get(_MARKER_SETTING) == SETTINGS[_MARKER_SETTING]
    return False


def error_reason(error: Exception, url: str) -> str:
    """Return the reason of an error for the owner's log, without its own message, which may quote a row or a token.

    >>> error_reason(ValueError("UNAUTHENTICATED: s3cret"), "sc://lake.example/;token=s3cret")
    'Spark at lake.example:15002 denied access. Check the token in SPARK_REMOTE.'
    """
    message = str(error)
    if "UNAUTHENTICATED" in message or "PERMISSION_DENIED" in message:
        return f"{server_name(url)} denied access. Check the token in SPARK_REMOTE."
    if "UNAVAILABLE" in message:
        return f"{server_name(url)} does not respond."
    return f"{_error_name(error)}. The log of {server_name(url)} may have details."


def _error_name(error: Exception) -> str:
    """Return Spark's name for an error, or else its type and source position."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    kind = type(error).__name__
    if not isinstance(error, PySparkException):
        last = traceback.extract_tb(error.__traceback__)[-1:]
        return kind + "".join(f" at {Path(frame.filename).name}, line {frame.lineno}" for frame in last)
    name, state = error.getCondition() or "", error.getSqlState() or ""
    return f"{name}, SQLSTATE {state}" if _ERROR_NAME.fullmatch(name) and state.isalnum() else kind


def is_connection_lost(error: Exception) -> bool:
    """Whether an error means a lost connection or a cancelled operation, and not a response to the request.

    >>> is_connection_lost(ConnectionError())
    True
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException  # noqa: PLC0415

    is_answer = isinstance(error, PySparkException) and type(error) is not SparkConnectGrpcException
    return not is_answer or any(word in str(error) for word in _LOST_MARKERS)


def _parse_url(url: str) -> tuple[str, str, dict[str, str]]:
    parts = _URL_PATTERN.fullmatch(url)
    if parts is None:
        raise PolicyError(_INVALID_URL)
    host, port, options = parts.groups()
    pairs = (option.partition("=") for option in (options or "").split(";"))
    return host, port or "15002", {name: value for name, _, value in pairs}


def _is_local(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    return False


def new_session(url: str) -> "SparkSession":
    """Create a session, without the builder, which would share it with other users of Spark in this process."""
    try:
        with _client_importable():
            from pyspark.logger import PySparkLogger  # noqa: PLC0415 - an extra
            from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415
    except ImportError:
        raise PolicyError(_CLIENT_MISSING) from None
    for name in _VERBOSE_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True  # errors may quote values, which must not be logged
    try:
        spark = SparkSession(connection=url)
    except Exception:  # noqa: BLE001 - the message may contain the token
        raise PolicyError(_INVALID_URL) from None
    spark.client.set_retry_policies([_retry_policy()])
    return spark


@contextmanager
def _client_importable() -> Iterator[None]:
    """Make the client importable in any program: it takes one without a file (python -c) for a test and exits."""
    main = sys.modules["__main__"]
    nameless = not hasattr(main, "__file__") and getattr(main, "__spec__", None) is None
    if nameless:
        main.__file__ = "-c"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about pandas, which is not used
            yield
    finally:
        if nameless:
            del main.__file__


def _retry_policy() -> Any:
    """Return a policy that retries for a short time; Spark's default retries for ten minutes and then warns."""
    from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState  # noqa: PLC0415

    class LimitedRetryState(RetryPolicyState):
        first: float | None = None

        def can_retry(self, exception: BaseException) -> bool:
            self.first = self.first or time.monotonic()
            return time.monotonic() - self.first < _RETRY_TIMEOUT and super().can_retry(exception)

    class LimitedRetryPolicy(DefaultPolicy):
        def to_state(self) -> RetryPolicyState:
            return LimitedRetryState(self)

    return LimitedRetryPolicy(max_retries=None, max_backoff=1000, recognize_server_retry_delay=False)


def apply_settings(spark: "SparkSession") -> None:
    """Apply the settings that the kernel relies on, and check that the server kept them."""
    version = spark.version
    if int(version.partition(".")[0]) < _MIN_VERSION:
        raise PolicyError(f"Spark: version {version} is not supported. Use version {_MIN_VERSION}.0 or newer.")
    for name, value in _PERFORMANCE_SETTINGS.items():
        spark.conf.set(name, value)
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
        if str(spark.conf.get(name)).lower() != value.lower():
            raise EngineError(f"the server did not apply the setting {name}.")
