"""How the connection is encrypted. What makes calls runs for Client and for aio.Client."""

from __future__ import annotations

import subprocess

import grpc
import pytest
from fake import PROBLEM, FakeServer
from golden import golden

import attune
from attune.retry import RetryPolicy
from attune.tls import Tls

GOLDEN = golden("tls")


def issue(folder, name, authority=None):
    """A certificate with its key, NAME.pem and NAME.key; signed by itself, or by another of them."""
    by = ("-CA", folder / f"{authority}.pem", "-CAkey", folder / f"{authority}.key") if authority else ()
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", folder / f"{name}.key")
    names = ("-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost")
    command = ("openssl", "req", "-x509", *key, *names, *by, "-days", "2", "-out", folder / f"{name}.pem")
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="session")
def pem(tmp_path_factory):
    """The path of a PEM file, by its name."""
    folder = tmp_path_factory.mktemp("tls")
    issue(folder, "authority")
    issue(folder, "stranger")
    issue(folder, "server", "authority")
    issue(folder, "client", "authority")
    return lambda name: folder / name


@pytest.fixture
def secure(pem):
    """A server that takes clients of the authority alone."""
    pairs = [(pem("server.key").read_bytes(), pem("server.pem").read_bytes())]
    roots = pem("authority.pem").read_bytes()
    server = FakeServer(None, grpc.ssl_server_credentials(pairs, roots, require_client_auth=True))
    yield server
    server.stop()


@pytest.fixture
def good(pem):
    return {"tls_ca": pem("authority.pem"), "tls_cert": pem("client.pem"), "tls_key": pem("client.key")}


@pytest.mark.parametrize(("encrypted", "vector"), [(kind, each) for kind in GOLDEN for each in GOLDEN[kind]])
def test_tls_is_for_other_hosts_and_where_it_is_asked_for(encrypted, vector):
    options = {name.removeprefix("tls_"): value for name, value in vector["options"].items()}
    assert Tls(**options).encrypts(vector["server"]) == (encrypted == "encrypted")


def test_the_server_is_verified_and_knows_the_client(connect, secure, good):
    assert connect(secure, **good).best(PROBLEM)
    assert secure.asked("GetBest")


@pytest.mark.parametrize(
    "wrong",
    [{"tls_ca": "stranger.pem"}, {"tls_server_name": "l4"}, {"tls_ca": None}, {"tls_cert": None, "tls_key": None}],
)
def test_a_foreign_server_and_a_foreign_client_are_refused(connect, secure, good, pem, wrong):
    named = {name: pem(value) if value and value.endswith(".pem") else value for name, value in wrong.items()}
    client = connect(secure, **{**good, **named}, retry=RetryPolicy(attempts=1))
    with pytest.raises(attune.Unreachable):
        client.ping()
    assert secure.requests == []


def test_a_failed_handshake_names_the_options(connect, secure, good, pem):
    client = connect(secure, **{**good, "tls_ca": pem("stranger.pem")}, retry=RetryPolicy(attempts=1))
    with pytest.raises(attune.Unreachable, match=r"no TLS connection to localhost:.*tls_ca.*tls_server_name"):
        client.ping()


def test_a_server_of_another_name_is_no_server(connect, secure, good):
    client = connect(secure, **good, tls_server_name="l4", retry=RetryPolicy(attempts=1))
    with pytest.raises(attune.Unreachable, match=r"no TLS connection to localhost:"):
        client.ping()


def test_a_closed_connection_names_the_options_too(connect, secure, good):
    client = connect(secure, tls_ca=good["tls_ca"], retry=RetryPolicy(attempts=1))
    with pytest.raises(attune.Unreachable, match=r"tls_cert"):
        client.ping()


def test_what_no_option_says_the_environment_does(connect, secure, good, monkeypatch):
    for name, value in good.items():
        monkeypatch.setenv(f"ATTUNE_{name.upper()}", str(value))
    connect(secure).ping()
    monkeypatch.setenv("ATTUNE_TLS_SERVER_NAME", "l4")
    with pytest.raises(attune.Unreachable):
        connect(secure, retry=RetryPolicy(attempts=1)).ping()
    connect(secure, tls_server_name="localhost").ping()


def test_a_token_is_sent_over_tls_to_another_host(connect, secure, good, tmp_path):
    token = tmp_path / "token"
    token.write_text("attune_mine")
    attune.Client("l4:7411", token_file=token).close()
    connect(secure, **good, token_file=token).ping()
    assert secure.authorizations == ["Bearer attune_mine"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tls_ca": "none"}, r"tls_ca is '.*none', which cannot be read: No such file"),
        ({"tls_ca": "client.key"}, r"tls_ca is '.*client.key', which holds no certificate in PEM"),
        ({"tls_cert": "client.pem"}, r"tls_cert is '.*client.pem' and tls_key is ''; allowed: both or neither"),
        ({"tls_cert": "client.pem", "tls_key": "server.key"}, r"which are no certificate and its unencrypted"),
        ({"tls_cert": "client.key", "tls_key": "client.key"}, r"which are no certificate and its unencrypted"),
    ],
)
def test_a_wrong_option_is_named(pem, options, error):
    with pytest.raises(attune.InvalidArgument, match=error):
        attune.Client("l4:7411", **{name: pem(value) for name, value in options.items()})


def test_insecure_stands_alone(pem):
    with pytest.raises(attune.InvalidArgument, match="insecure is set together with other TLS options"):
        attune.Client("l4:7411", insecure=True, tls_ca=pem("authority.pem"))
