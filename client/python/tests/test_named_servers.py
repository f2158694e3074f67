"""Servers with names, in the user's file."""

from __future__ import annotations

import pathlib

import pytest
from golden import golden

import attune
import attune.aio
from attune.named_servers import named_server, path_in

PATH = "/config/attune/servers"


@pytest.fixture
def file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    for variable in ("ATTUNE_SERVER", "ATTUNE_TOKEN_FILE", "ATTUNE_TLS_CA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "attune").mkdir()
    return tmp_path / "attune/servers"


@pytest.mark.parametrize("vector", golden("named_servers"))
def test_a_name_stands_for_what_the_file_says(vector):
    if "found" in vector:
        assert named_server(vector["text"], PATH, vector["name"]) == vector["found"]
        return
    with pytest.raises(attune.InvalidArgument) as error:
        named_server(vector["text"], PATH, vector["name"])
    assert str(error.value) == vector["error"]


def test_the_file_is_in_the_users_configuration():
    assert path_in({"XDG_CONFIG_HOME": "/config", "HOME": "/home/me"}) == "/config/attune/servers"
    assert path_in({"XDG_CONFIG_HOME": "config", "HOME": "/home/me"}) == "/home/me/.config/attune/servers"
    assert path_in({"HOME": "/home/me"}) == "/home/me/.config/attune/servers"
    assert path_in({}) == ""


@pytest.mark.parametrize("kind", [attune.Client, attune.aio.Client])
def test_a_client_is_given_a_name(file, monkeypatch, kind):
    monkeypatch.setenv("ATTUNE_TOKEN_FILE", "/tokens/any")
    file.write_text("[l4]\nserver = localhost:7422\n[own]\nserver = localhost:7433\ntoken_file = own.token\n")
    assert (kind("l4").server, kind("l4").token_file) == ("localhost:7422", ""), "the token may be another server's"
    assert kind("l4", token_file="/tokens/given").token_file == "/tokens/given"
    assert (kind("own").server, kind("own").token_file) == ("localhost:7433", str(file.parent / "own.token"))
    assert kind("own", token_file="/tokens/given").token_file == "/tokens/given"
    monkeypatch.setenv("ATTUNE_SERVER", "own")
    assert kind().server == "localhost:7433"
    monkeypatch.setenv("ATTUNE_SERVER", "l4")
    assert (kind().server, kind().token_file) == ("localhost:7422", "")
    assert kind("localhost:7411").token_file == "/tokens/any"


def test_a_named_servers_certificates_count(file):
    file.write_text("[l4]\nserver = l4:7411\ntls_server_name = l4.example\n[h200]\nserver = h:1\ntls_ca = ca.pem\n")
    (file.parent / "ca.pem").write_text("none")
    assert attune.Client("l4").tls.server_name == "l4.example"
    with pytest.raises(attune.InvalidArgument, match=f"^tls_ca is '{file.parent}/ca.pem', which holds no certificate"):
        attune.Client("h200")


def test_a_name_without_a_file_is_rejected_with_where_the_file_would_be(file, monkeypatch):
    allowed = r"it must be host:port with a port of 1\.\.65535, or unix:/path"
    with pytest.raises(
        attune.InvalidArgument, match=f"^server is 'l5'; {allowed}, or a name in {file}, which does not"
    ):
        attune.Client("l5")
    with pytest.raises(attune.InvalidArgument, match=f"^server is 'l5:'; {allowed}$"):
        attune.Client("l5:")  # an address
    monkeypatch.setenv("ATTUNE_SERVER", "l6")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("HOME", raising=False)
    with pytest.raises(attune.InvalidArgument, match=rf"^\$ATTUNE_SERVER is 'l6'; {allowed}, or a name, if \$HOME is"):
        attune.Client()


def test_a_name_that_is_none_is_rejected_with_those_that_are(file):
    file.write_text("[l4]\nserver = l4\n")
    with pytest.raises(attune.InvalidArgument, match="servers:2: server is 'l4'; it must be host:port"):
        attune.Client("l4")
    file.write_text("[l4]\nserver = l4:port\n")
    with pytest.raises(attune.InvalidArgument, match=r"^the server of 'l4' is 'l4:port'; it must be host:port"):
        attune.Client("l4")
    file.write_text("[l4]\nserver = l4:7411\n")
    with pytest.raises(attune.InvalidArgument, match=f"^the server is 'l5'; .* or a name in {file}: l4$"):
        attune.Client("l5")
    file.chmod(0)
    if not _reads_anything(file):
        with pytest.raises(attune.InvalidArgument, match=f"^the servers' file {file} cannot be read: "):
            attune.Client("l4")


def _reads_anything(file: pathlib.Path) -> bool:
    """As root does."""
    try:
        file.read_text()
    except PermissionError:
        return False
    return True
