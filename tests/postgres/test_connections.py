"""The way to a server: encrypted unless it is here, with the password from where it belongs, and never shown."""

import logging
import os
import shutil
import sys
import traceback
import warnings
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from servers.postgres import Cluster, binaries

from discreet.engines.postgres.engine import Postgres
from discreet.engines.table_source import EngineError, TableSource
from discreet.kernel.errors import DiscreetError, PolicyError
from discreet.kernel.expr import Type
from discreet.kernel.loss import Budget
from discreet.ledger_postgres.ledger import create_postgres_ledger
from discreet.postgres import server as connecting
from discreet.postgres.server import ServerUnreachable, connect, driver, server_description

MARK = "hunter2-7f3a"  # the password: it must be in no text


@pytest.fixture(autouse=True)
def plain(monkeypatch, tmp_path):
    """Let nothing of this machine count: no variables, no files at home."""
    for name in list(os.environ):
        if name.startswith("PG"):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def certificate(folder, name, issuer=None):
    """Make a certificate for a host, by itself or by another, and return it with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer, signing = (issuer[0].subject, issuer[1]) if issuer else (subject, key)
    today = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .sign(signing, hashes.SHA256())
    )
    (folder / f"{name}.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    kind = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    (folder / f"{name}.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *kind))
    return made, key


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """Give a server with a certificate for db.example, that wants passwords and encryption but from db.local."""
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt install postgresql)")
    folder = tmp_path_factory.mktemp("tls")
    authority = certificate(folder, "authority")
    certificate(folder, "stranger")
    certificate(folder, "db.example", authority)
    cluster = Cluster()
    for end in ("crt", "key"):
        place = cluster.folder / "data" / f"server.{end}"
        shutil.copy(folder / f"db.example.{end}", place)
        place.chmod(0o600)
        if os.getuid() == 0:
            shutil.chown(place, "postgres", "postgres")
    cluster.configure("ssl = on")
    cluster.start()
    with connect(cluster.url()) as server:
        server.execute(f"CREATE ROLE strict LOGIN PASSWORD '{MARK}'")
        server.execute("CREATE TABLE t (x integer)")
        server.execute("GRANT SELECT ON t TO strict")
        server.execute("SELECT pg_reload_conf()")
    entries = "host all postgres 127.0.0.1/32 trust\nhostssl all strict 127.0.0.1/32 scram-sha-256\n"
    cluster._write("pg_hba.conf", entries)
    cluster.restart()
    cluster.certificates = folder
    yield cluster
    cluster.stop()


def away(cluster, *words, user="strict", host="db.example"):
    """Return a URL of the server as if it were on another machine."""
    said = "&".join([f"hostaddr=127.0.0.1&port={cluster.port}", *words])
    return f"postgresql://{user}@{host}/postgres?{said}"


def encrypted(connection):
    return connection.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()[0]


def test_a_remote_server_is_reached_encrypted_if_its_certificate_is_valid(strict, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", MARK)
    with connect(away(strict, f"sslrootcert={strict.certificates}/authority.crt")) as connection:
        assert encrypted(connection)
        assert connection.autocommit
    monkeypatch.setenv("PGSSLROOTCERT", str(strict.certificates / "authority.crt"))
    for words in (["sslmode=verify-full"], ["sslmode=verify-ca"], []):
        with connect(away(strict, *words)) as connection:
            assert encrypted(connection)


def test_a_root_certificate_in_the_home_folder_is_used(strict, monkeypatch, plain):
    monkeypatch.setenv("PGPASSWORD", MARK)
    (plain / ".postgresql").mkdir()
    shutil.copy(strict.certificates / "authority.crt", plain / ".postgresql" / "root.crt")
    assert connecting._encryption({"host": "db.example"}) == {"sslmode": "verify-full", "gssencmode": "disable"}


@pytest.mark.parametrize(
    ("host", "root"),
    [("db.example", "stranger"), ("db.other", "authority"), ("db.example", None)],
    ids=["signed by somebody else", "of another host", "known to nobody"],
)
def test_an_invalid_certificate_is_refused(strict, monkeypatch, host, root):
    monkeypatch.setenv("PGPASSWORD", MARK)
    words = [f"sslrootcert={strict.certificates}/{root}.crt"] if root else []
    with pytest.raises(ServerUnreachable, match=r"encrypted connection. Check the server certificate"):
        connect(away(strict, *words, host=host))


def test_a_remote_server_without_encryption_is_refused(postgres):
    with pytest.raises(ServerUnreachable, match="encrypted connection"):
        connect(away(postgres, user="postgres"))


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", ""])
def test_an_sslmode_that_may_be_unencrypted_is_refused_for_remote_servers(mode, monkeypatch):
    with pytest.raises(PolicyError, match=f"db.example: sslmode={mode} does not protect .* Use sslmode=verify-full"):
        connect(f"postgresql://ana@db.example/clinic?sslmode={mode}")
    if mode:
        monkeypatch.setenv("PGSSLMODE", mode)
        with pytest.raises(PolicyError, match=r"db.example"):
            connect("postgresql://ana@db.example/clinic")
        assert connecting._encryption(connecting._connection_parameters("postgresql://ana@127.0.0.1/clinic")) == {}


PLACES = {
    "postgresql://ana@localhost/x": {},
    "postgresql://ana@127.0.0.1:5433/x": {},
    "postgresql://ana@127.9.9.9/x": {},
    "postgresql://ana@[::1]/x": {},
    "postgresql:///x": {},
    "postgresql:///x?host=/run/postgresql": {},
    "postgresql://db.example/x": {"sslmode": "verify-full", "sslrootcert": "system"},
    "postgresql://10.0.0.1/x": {"sslmode": "verify-full", "sslrootcert": "system"},
    "postgresql://localhost,db.example/x": {"sslmode": "verify-full", "sslrootcert": "system"},
    "postgresql://localhost/x?hostaddr=10.0.0.1": {"sslmode": "verify-full", "sslrootcert": "system"},
    "postgresql://localhost.example/x": {"sslmode": "verify-full", "sslrootcert": "system"},
    "postgresql://db.example/x?sslmode=require": {"sslmode": "require"},
    "postgresql://db.example/x?sslmode=verify-ca": {"sslmode": "verify-ca", "sslrootcert": "system"},
    "postgresql://db.example/x?sslrootcert=a.crt": {"sslmode": "verify-full"},
    "postgresql:///x?service=clinic": {"sslmode": "verify-full"},
    "postgresql:///x?service=": {"sslmode": "verify-full"},
    "postgresql://127.0.0.1/x?service=clinic": {"sslmode": "verify-full"},
    "postgresql:///x?host=/tmp&hostaddr=127.0.0.1&service=clinic&sslmode=require": {"sslmode": "require"},
}


@pytest.mark.parametrize("url", PLACES)
def test_only_local_servers_may_be_unencrypted(url):
    ways = PLACES[url] and {**PLACES[url], "gssencmode": "disable"}
    assert connecting._encryption(connecting._connection_parameters(url)) == ways


def test_the_environment_can_name_a_server_too(monkeypatch):
    monkeypatch.setenv("PGHOST", "db.example")
    assert connecting._encryption(connecting._connection_parameters("postgresql:///x"))["sslmode"] == "verify-full"
    assert connecting._encryption(connecting._connection_parameters("postgresql://127.0.0.1/x")) == {}
    monkeypatch.setenv("PGHOSTADDR", "10.0.0.1")
    assert (
        connecting._encryption(connecting._connection_parameters("postgresql://127.0.0.1/x"))["sslmode"]
        == "verify-full"
    )
    monkeypatch.delenv("PGHOST")
    monkeypatch.delenv("PGHOSTADDR")
    monkeypatch.setenv("PGSERVICE", "clinic")
    monkeypatch.setenv("PGSSLMODE", "require")  # the service's own mode may be a stricter one
    for url in ("postgresql:///x", "postgresql://127.0.0.1/x", "postgresql:///x?host=/tmp"):
        assert connecting._encryption(connecting._connection_parameters(url))["sslmode"] == "verify-full"
    assert (
        connecting._encryption(connecting._connection_parameters("postgresql:///x?sslmode=verify-ca"))["sslmode"]
        == "verify-ca"
    )
    with pytest.raises(PolicyError, match="service clinic: sslmode=prefer does not protect"):
        connecting._encryption(connecting._connection_parameters("postgresql:///x?sslmode=prefer"))


@pytest.fixture
def services(postgres, tmp_path, monkeypatch):
    """Give a file of services that lead to the server as if it were elsewhere, and to two servers."""
    file = tmp_path / "services"
    elsewhere = f"hostaddr=127.0.0.1\nport={postgres.port}\nsslmode=disable\nuser=postgres\n"
    two = f"host=127.0.0.1,127.0.0.2\nport={postgres.port},{postgres.port}\nuser=postgres\n"
    file.write_text(f"[clinic]\nhost=db.example\n{elsewhere}[address]\n{elsewhere}[two]\n{two}[]\n{elsewhere}")
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    return file


@pytest.mark.parametrize(
    ("url", "environment"),
    [
        ("postgresql:///postgres?service=clinic", {}),
        ("postgresql:///postgres?service=clinic", {"PGHOST": "localhost"}),
        ("postgresql:///postgres", {"PGHOST": "/tmp", "PGSERVICE": "clinic"}),
        ("postgresql:///postgres", {"PGHOST": "/tmp", "PGSERVICE": ""}),
        ("postgresql:///postgres?host=/tmp&service=address", {}),
        ("postgresql://localhost/postgres?service=address", {}),
        ("postgresql:///postgres?service=address", {"PGHOSTADDR": "127.0.0.1", "PGSSLMODE": "disable"}),
    ],
)
def test_a_service_file_cannot_name_a_remote_server_without_encryption(services, monkeypatch, url, environment):
    """What a service says counts before the environment, and its address before the URL's host."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ServerUnreachable, match=r"database postgres: .* encrypted connection"):
        connect(url)


def test_a_service_file_can_name_a_server_with_a_valid_certificate(strict, services, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", MARK)
    root = f"sslrootcert={strict.certificates}/authority.crt\n"
    way = f"host=db.example\nhostaddr=127.0.0.1\nport={strict.port}\nuser=strict\ndbname=postgres\n"
    services.write_text(f"[clinic]\n{way}{root}[stranger]\n{way}{root.replace('authority', 'stranger')}")
    with connect("postgresql://?service=clinic") as connection:
        assert encrypted(connection)
    with pytest.raises(ServerUnreachable, match=r"service stranger, database of the user: .* encrypted connection"):
        connect("postgresql://?service=stranger")


@pytest.mark.parametrize("how", ["PGSERVICEFILE", "home", "PGSYSCONFDIR"])
def test_a_service_file_with_a_password_must_be_private(strict, services, monkeypatch, plain, how):
    where = {"home": plain / ".pg_service.conf", "PGSYSCONFDIR": plain / "pg_service.conf"}.get(how, services)
    way = f"host=db.example\nhostaddr=127.0.0.1\nport={strict.port}\nuser=strict\ndbname=postgres\n"
    where.write_text(f"[clinic]\n{way}sslrootcert={strict.certificates}/authority.crt\npassword={MARK}\n")
    if how != "PGSERVICEFILE":
        monkeypatch.delenv("PGSERVICEFILE")
        monkeypatch.setenv("PGSYSCONFDIR", str(plain))
    where.chmod(0o640)
    with pytest.raises(PolicyError, match=r"readable by other users. .* chmod 600") as caught:
        connect("postgresql://?service=clinic")
    assert MARK not in str(caught.value)
    connecting._check_secret_files(
        connecting._connection_parameters("postgresql://127.0.0.1/x")
    )  # no service, no matter
    where.chmod(0o600)
    with connect("postgresql://?service=clinic") as connection:
        assert encrypted(connection)


UNREADABLE = [
    f"postgresql://ana:{MARK}/x@127.0.0.1/clinic",
    f"postgresql://ana:12/{MARK}@127.0.0.1/clinic",
    f"postgresql://ana:1/2?sslmode={MARK}@db.example/clinic",
    f"postgresql://ana:x@{MARK}@127.0.0.1/clinic",
    f"postgresql://ana:{MARK}",
    f"postgresql://ana:{MARK}/clinic",
    f"postgres://db.example:1,other.example:{MARK}/clinic",
    f"postgresql:///clinic?port={MARK}",
    f"postgresql:///clinic?host={MARK}@db.example",
]


@pytest.mark.parametrize("url", UNREADABLE)
@pytest.mark.parametrize(
    "attempt", [server_description, connect, lambda url: create_postgres_ledger(url, name="x", budget=Budget(1))]
)
def test_a_password_with_special_characters_is_not_parsed_as_a_location(url, attempt):
    """An @ or a / that is not escaped would make the password a host, a port or the name of a database."""
    with pytest.raises(PolicyError, match=r"invalid URL.* @ as %40 and / as %2F") as caught:
        attempt(url)
    assert MARK not in "".join(traceback.format_exception(caught.value))


def test_escaped_characters_can_be_read():
    url = "postgresql://ana:a%40b%2Fc@db.example:/a%40b"
    assert server_description(url) == "PostgreSQL at db.example, database a@b"


def test_displayed_locations_have_no_user_names(monkeypatch):
    assert (
        server_description("postgresql://ana:x@db.example:5433/clinic")
        == "PostgreSQL at db.example:5433, database clinic"
    )
    assert server_description("postgresql://ana@/clinic") == "PostgreSQL at this machine, database clinic"
    assert server_description("postgresql:///?service=clinic") == "PostgreSQL at service clinic, database of the user"
    monkeypatch.setenv("PGHOST", "db.example")
    monkeypatch.setenv("PGPORT", "7")
    monkeypatch.setenv("PGDATABASE", "clinic")
    assert server_description("postgresql://") == "PostgreSQL at db.example:7, database clinic"


def test_settings_are_those_of_the_connection(postgres, monkeypatch):
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=5MB")
    settings = {"statement_timeout": "1234", "application_name": "an odd \\ name", "search_path": ""}
    with connect(postgres.url(), **settings) as connection:
        found = {
            name: connection.execute(f"SHOW {name}").fetchone()[0]
            for name in (*settings, "work_mem", "client_encoding", "tcp_keepalives_idle")
        }
    assert found["statement_timeout"] == "1234ms"
    assert found["search_path"] == ""
    assert found["work_mem"] == "5MB"
    assert found["client_encoding"] == "UTF8"


def test_errors_are_reported_in_our_own_words(postgres, strict, monkeypatch):
    def said(url):
        with pytest.raises(ServerUnreachable) as caught:
            connect(url)
        return str(caught.value).partition(", database ")[2].partition(": ")[2]

    assert said(postgres.url("nowhere")).startswith("the database or user does not exist. Correct the URL")
    assert said("postgresql://127.0.0.1:1/x").startswith("cannot connect to the server. Check the host and port")
    root = f"sslrootcert={strict.certificates}/authority.crt"
    monkeypatch.setenv("PGPASSWORD", "wrong")
    assert said(away(strict, root)).startswith("authentication failed. Check the user name, and PGPASSWORD")
    monkeypatch.delenv("PGPASSWORD")
    assert said(away(strict, root)).startswith("authentication failed")
    with pytest.raises(PolicyError, match=r"invalid URL. Expected postgresql://"):
        connect("postgresql://[::1/x")
    with pytest.raises(PolicyError, match="invalid URL"):
        connect(f"postgresql://ana:{MARK}@db/x?nosuch={MARK}")


def test_a_server_with_too_many_connections_is_reported(postgres):
    with connect(postgres.url()) as server:
        server.execute("DROP ROLE IF EXISTS crowd")
        server.execute("CREATE ROLE crowd LOGIN CONNECTION LIMIT 1")
    with (
        connect(postgres.url(user="crowd")),
        pytest.raises(ServerUnreachable, match="the server has too many connections"),
    ):
        connect(postgres.url(user="crowd"))


def test_a_password_file_works_and_must_be_private(strict, monkeypatch, plain):
    for file in (plain / ".pgpass", plain / "elsewhere"):
        file.write_text(f"*:*:*:strict:{MARK}\n")
        file.chmod(0o600)
        url = away(strict, f"sslrootcert={strict.certificates}/authority.crt")
        if file.name == "elsewhere":
            (plain / ".pgpass").unlink()
            monkeypatch.setenv("PGPASSFILE", str(file))
        with connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        file.chmod(0o640)
        with pytest.raises(PolicyError, match=r"password file is readable by other users.* chmod 600"):
            connect(url)
        file.chmod(0o600)


def test_no_text_has_the_password(strict, monkeypatch, caplog, capfd):
    """Neither errors with all that led to them, nor logs, warnings, names of places or what is printed."""
    caplog.set_level(logging.DEBUG)
    root = f"sslrootcert={strict.certificates}/authority.crt"
    right, wrong = away(strict, root), away(strict, root, user="nobody")
    source = {"t": TableSource("t", {"x": Type.INTEGER})}
    texts = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for url in (
            *(wrong, away(strict), away(strict, "sslmode=disable"), away(strict, root, host="db.other")),
            *(right.replace("/postgres?", "/nowhere?"), right.replace(str(strict.port), "1"), "postgresql://[::1/x"),
        ):
            for inside in (False, True):
                monkeypatch.delenv("PGPASSWORD", raising=False)
                said = url.replace("@", f":{MARK}@").replace("[::1", f"ana:{MARK}@[::1") if inside else url
                if not inside:
                    monkeypatch.setenv("PGPASSWORD", MARK)
                for attempt in (connect, lambda each: Postgres(source, url=each)):
                    with pytest.raises(DiscreetError) as caught:
                        attempt(said)
                    texts += [str(caught.value), repr(caught.value), *traceback.format_exception(caught.value)]
        monkeypatch.setenv("PGPASSWORD", MARK)
        with Postgres(source, url=right) as engine:
            texts += [repr(engine), str(vars(engine)), str(vars(engine._session)), server_description(right)]
            for sql in ("SELECT 1/0", "nonsense", "SELECT pg_terminate_backend(pg_backend_pid())"):
                with pytest.raises(EngineError) as failed:
                    engine.query(sql)
                texts += [str(failed.value), *traceback.format_exception(failed.value)]
    texts += [str(each.message) for each in warned] + [record.getMessage() for record in caplog.records]
    texts += capfd.readouterr()
    assert len(texts) > 50
    assert not [text for text in texts if MARK in text]


def test_without_the_driver_an_error_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        PolicyError, match=r"the driver is not installed. Install it with: pip install 'discreet\[postgres\]'"
    ):
        driver()


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1:1,127.0.0.1:2/x", "postgresql:///x?host=a,b&sslmode=require"])
def test_a_ledger_has_one_server(url):
    """Of several, each could get an account of its own while the others are away."""
    with pytest.raises(PolicyError, match="names several servers"):
        create_postgres_ledger(url, name="demo", budget=Budget(1))


def test_a_ledger_has_no_service(services, monkeypatch):
    """Its file may name several servers, or others tomorrow, whatever the environment says."""
    words = "names a service, and the service file may list several servers, .* Name exactly one server"
    for url in ("postgresql:///postgres?service=two", "postgresql://127.0.0.1/postgres?service=two&sslmode=require"):
        with pytest.raises(PolicyError, match=words):
            create_postgres_ledger(url, name="demo", budget=Budget(1))
    monkeypatch.setenv("PGSERVICE", "two")
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    with pytest.raises(PolicyError, match=words):
        create_postgres_ledger("postgresql:///postgres", name="demo", budget=Budget(1))


def test_options_of_a_connection_do_not_replace_those_of_the_url(monkeypatch):
    class Library:
        Error = RuntimeError

        @staticmethod
        def connect(url, **options):
            return options

    library = driver()
    monkeypatch.setattr(Library, "conninfo", library.conninfo, raising=False)
    monkeypatch.setattr(connecting, "driver", lambda: Library)
    usual = connect("postgresql://127.0.0.1/x")
    assert {name: usual[name] for name in connecting._KEEPALIVE} == {
        "keepalives_idle": "30",
        "keepalives_interval": "10",
        "keepalives_count": "3",
        "tcp_user_timeout": "30000",
    }
    assert usual["connect_timeout"] == 10
    assert "options" not in usual  # or those of a service file would not count
    own = connect("postgresql://127.0.0.1/x?keepalives_idle=5")
    assert "keepalives_idle" not in own  # the URL has it
    assert own["keepalives_count"] == "3"


def test_a_server_is_described_by_its_address_and_a_database_by_the_user_where_nothing_else_is_given():
    assert server_description("postgresql:///x?hostaddr=10.0.0.1") == "PostgreSQL at 10.0.0.1, database x"
    assert server_description("postgresql:///x?port=7") == "PostgreSQL at this machine, database x"
    assert server_description("postgresql://ana@db.example") == "PostgreSQL at db.example, database ana"
    assert server_description("host=db.example dbname=clinic") == "PostgreSQL at db.example, database clinic"


def test_a_service_may_be_several_servers():
    assert "names a service" in connecting.server_ambiguity("postgresql:///x?service=clinic")
    assert connecting.server_ambiguity("postgresql://db.example/x") is None


def test_a_service_file_that_this_user_cannot_read_is_not_read(services, monkeypatch):
    services.write_text(f"[clinic]\npassword={MARK}\n")
    services.chmod(0o640)
    parameters = connecting._connection_parameters("postgresql:///x?service=clinic")
    with pytest.raises(PolicyError, match="readable by other users"):
        connecting._check_secret_files(parameters)
    monkeypatch.setattr(connecting.os, "access", lambda *_: False)
    connecting._check_secret_files(parameters)
