"""What several tests start from."""

from __future__ import annotations

import asyncio
import pathlib
import sys

import pytest
from awaited import Awaited
from fake import FakeClock, FakeServer

import attune
import attune.aio

TESTS = pathlib.Path(__file__).resolve().parents[3] / "tests"
sys.path[:0] = [str(TESTS / "e2e"), str(TESTS / "golden")]


@pytest.fixture
def server(tmp_path):
    """A server with canned answers, in the process."""
    server = FakeServer(f"unix:{tmp_path}/fake.sock")
    yield server
    server.stop()


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=["Client", "aio.Client"])
def connect(request, clock):
    """Makes clients of either kind, all to be used without awaiting; `connect(server, **options)`."""
    loop = asyncio.new_event_loop()
    clients = []

    def make(server, **options):
        options = {"clock": clock, **options}
        if request.param == "Client":
            client = attune.Client(server.address, **options)
        else:
            client = Awaited(attune.aio.Client(server.address, **options), loop)
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()
    loop.close()
