"""discreet serve: where it may listen, how it starts and stops, and what it logs."""

import json
import re
import shutil
import signal
import ssl
import stat
import subprocess
import sys
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from served import Serving, open_service
from typer.testing import CliRunner

import discreet as dc
from discreet.cli import app
from discreet.server.http.listener import start_http
from discreet.server.run import ServeSettings
from discreet.server.tls import ListenAddress, TlsFiles

POLICY = """
[data]
name = "clinic"
[budget]
epsilon = 10
[budget.analysts]
ana = { epsilon = 2 }
[server]
tick = 0
[tables.visits]
source = "visits.csv"
unit = "patient"
groups = 1
rows = 2
[tables.visits.columns]
patient = { type = "integer" }
"""
ASK = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1/10"}


@pytest.fixture(scope="session")
def tls(tmp_path_factory):
    """A certificate of our own for the loopback."""
    folder, key = tmp_path_factory.mktemp("tls"), ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return TlsFiles(folder / "cert.pem", folder / "key.pem")


@pytest.mark.parametrize("address", ["0.0.0.0:8080", "[::]:8080", "192.0.2.1:8080", "db.example.org:8080"])
def test_an_address_that_others_can_reach_is_refused_without_a_certificate(address, tls):
    addresses = {"http": ListenAddress.parse(address, "--http")}
    with pytest.raises(dc.PolicyError, match=r"--http: other machines .*--tls-cert"):
        ServeSettings(addresses).check()
    ServeSettings(addresses, tls).check()


@pytest.mark.parametrize("address", ["8080", "127.0.0.1:8080", "localhost:0", "[::1]:8080", "127.8.0.1:1"])
def test_the_loopback_needs_no_certificate(address):
    ServeSettings({"http": ListenAddress.parse(address, "--http")}).check()


@pytest.mark.parametrize("address", ["", "x", "127.0.0.1", "1:2:x", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:٣"])
def test_what_is_no_address_is_named(address):
    with pytest.raises(dc.PolicyError, match="--http"):
        ListenAddress.parse(address, "--http")


def test_wrong_options_are_named_and_exit_with_2(tmp_path, tls):
    (tmp_path / "policy.toml").write_text(POLICY)
    for words, message in (
        (["--http", "0.0.0.0:8080"], "--tls-cert"),
        (["--http", "none"], "nothing would listen"),
        (["--tls-cert", tls.certificate], "both or neither"),
        (["--tls-cert", tls.certificate, "--tls-key", tls.certificate], "cannot be loaded"),
        (["--http", "none", "--pg", "x"], "--pg"),
    ):
        done = CliRunner().invoke(app, ["serve", str(tmp_path / "policy.toml"), *map(str, words)])
        assert done.exit_code == 2
        assert message in done.stderr


@pytest.mark.long
def test_the_command_of_the_container_starts_with_a_certificate_and_stops(tmp_path, tls):
    text = (Path(__file__).resolve().parents[2] / "deploy" / "Containerfile").read_text()
    (words,) = re.findall(r"^CMD (.*)$", text, re.MULTILINE)
    command = [word.replace("0.0.0.0:8080", "127.0.0.1:0") for word in json.loads(words)]
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "visits.csv").write_text("patient\n1\n2\n")
    for file in (tls.certificate, tls.key):
        shutil.copy(file, tmp_path)
    started = [sys.executable, "-m", "discreet", *command]
    with subprocess.Popen(started, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        (address,) = re.findall(r"https://\S+:\d+", server.stderr.readline())
        trusted = ssl.create_default_context(cafile=tls.certificate)
        assert httpx.get(f"{address}/health", verify=trusted).status_code == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


def test_a_port_that_is_taken_is_named(serving):
    server = serving()
    address = ListenAddress.parse(server.url.removeprefix("http://"), "--http")
    with pytest.raises(dc.PolicyError, match="cannot listen"):
        server.run(start_http(server.service, address, None))


def test_tls_is_version_1_2_or_later(tls):
    server = Serving(open_service(), tls)
    try:
        assert server.url.startswith("https://")
        trusted = ssl.create_default_context(cafile=tls.certificate)
        assert httpx.get(f"{server.url}/health", verify=trusted).status_code == 200
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(tls.certificate)
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1"):
            old.minimum_version = ssl.TLSVersion.TLSv1
        with pytest.warns(DeprecationWarning, match="TLSv1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/health", verify=old)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/health", verify=ssl.create_default_context())
        assert tls.context().minimum_version == ssl.TLSVersion.TLSv1_2
    finally:
        server.close()


class Process:
    """`discreet serve` in a process of its own."""

    def __init__(self, folder, *options):
        (folder / "visits.csv").write_text("patient\n" + "\n".join(map(str, range(100))) + "\n")
        policy = folder / "policy.toml"
        if not policy.exists():
            policy.write_text(POLICY)
        command = [sys.executable, "-m", "discreet"]
        issued = subprocess.run([*command, "analyst", "add", policy, "ana"], capture_output=True, text=True, check=True)
        self.token = issued.stdout.strip()
        self.process = subprocess.Popen(
            [*command, "serve", policy, "--http", "0", *options], stderr=subprocess.PIPE, text=True, cwd=folder
        )
        line = self.process.stderr.readline()
        self.url = re.search(r"http://\S+:\d+", line)[0]

    def stop(self, number=signal.SIGTERM):
        """Send a signal, and return the exit code and what the process wrote at its end."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors

    def client(self):
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=60)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_after_the_questions_that_have_begun(tmp_path, number):
    served = Process(tmp_path)
    with served.client() as client:
        bodies = [{**ASK, "epsilon": f"1/{100 + n}", "sql": f"{ASK['sql']} WHERE patient > {n}"} for n in range(20)]
        with ThreadPoolExecutor(len(bodies)) as pool:
            asked = [pool.submit(client.post, "/api/v1/ask", json=body) for body in bodies]
            wait(asked, return_when=FIRST_COMPLETED)
            code, errors = served.stop(number)
    assert (code, errors) == (0, "")
    answers = [each.result() for each in asked if not each.exception()]
    with dc.open_ledger(tmp_path / "ledger.sqlite", name="clinic") as ledger:
        ledger.verify()
        events = ledger.events()
        assert all(str(event.state) == "released" for event in events)
    assert len([answer for answer in answers if answer.status_code == 200]) == len(events)


@pytest.mark.long
def test_the_log_says_who_asked_what_and_how_it_ended_and_no_answer(tmp_path):
    served = Process(tmp_path)
    with served.client() as client:
        answer = client.post("/api/v1/ask", json={**ASK, "purpose": "a study"}).json()
        client.post("/api/v1/ask", json={"sql": "SELECT patient FROM visits", "epsilon": 1})
    assert served.stop() == (0, "")
    path = tmp_path / "ledger.sqlite.server.log"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["start", "ask", "ask", "stop", "stopped"]
    assert [line.get("outcome") for line in lines[1:3]] == ["answered", "refused"]
    assert lines[1]["by"] == "ana"
    assert lines[1]["sql"] == ASK["sql"]
    assert lines[1]["purpose"] == "a study"
    number = answer["rows"][0]["n"]
    assert all(number not in line.values() for line in lines)
    assert served.token not in path.read_text()
