"""The token that calls bring. What makes calls runs for Client and for aio.Client."""

from __future__ import annotations

import pytest
from fake import OPERATION, PROBLEM
from golden import golden

import attune
from attune.token import is_local, token_in

GOLDEN = golden("token")


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text("attune_first\n")
    return path


@pytest.mark.parametrize("vector", GOLDEN["tokens"])
def test_a_token_is_the_one_line_of_its_file(vector):
    if vector["token"] is not None:
        assert token_in(vector["contents"], "file") == vector["token"]
        return
    with pytest.raises(attune.InvalidArgument, match="`attune token create` prints one"):
        token_in(vector["contents"], "file")


@pytest.mark.parametrize("server", GOLDEN["local"])
def test_a_token_is_sent_on_this_host(server, token_file):
    assert is_local(server)
    attune.Client(server, token_file=token_file).close()


@pytest.mark.parametrize("server", GOLDEN["remote"])
def test_no_token_is_sent_to_another_host(server, token_file):
    with pytest.raises(attune.FailedPrecondition, match="a token would cross the network"):
        attune.Client(server, token_file=token_file, insecure=True)


def test_every_call_brings_what_the_file_holds_then(connect, server, token_file):
    client = connect(server, token_file=token_file)
    client.best(PROBLEM)
    token_file.write_text("attune_second")
    client.ping()
    assert server.authorizations[0] == "Bearer attune_first"
    assert server.authorizations[-1] == "Bearer attune_second"


def test_a_watch_brings_it_too(server, token_file):
    with attune.Client(server.address, token_file=token_file) as client:
        assert list(client.watch(OPERATION))
    assert server.authorizations == ["Bearer attune_first"]


def test_the_file_comes_from_the_environment(connect, server, token_file, monkeypatch):
    connect(server).ping()
    monkeypatch.setenv("ATTUNE_TOKEN_FILE", str(token_file))
    connect(server).ping()
    assert server.authorizations == [None, "Bearer attune_first"]


def test_without_a_token_no_call_is_made(connect, server, token_file):
    client = connect(server, token_file=token_file)
    token_file.unlink()
    with pytest.raises(attune.InvalidArgument, match="cannot be read: No such file"):
        client.ping()
    assert server.requests == []
