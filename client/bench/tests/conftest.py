"""A device that is made up, for what a run does around it, and the client tests' server with canned answers."""

from __future__ import annotations

import pathlib
import sys
import types

import pytest
from runs import header, row

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [
    str(ROOT / folder) for folder in ("client/python/tests", "tests/e2e", "tests/golden", "tests/gpu")
]  # fake, harness, golden, rounding_tail

FACTS = types.SimpleNamespace(
    name="NVIDIA H200",
    sm_count=132,
    l2_bytes=60 << 20,
    memory_bytes=139 << 30,
    driver="580.159.04",
    libraries=header().libraries,
)


class MadeUpDevice:
    """`timed` are the problems it was asked to time; it breaks at `fails_at`."""

    def __init__(self):
        self.timed = []
        self.rules = None  # of the last row
        self.fails_at = None

    def facts(self):
        return FACTS

    def bench_row(self, stage, problem, served):
        if str(problem) == self.fails_at:
            raise RuntimeError("an illegal memory access was encountered")
        self.timed.append(str(problem))
        self.rules = stage.rules
        return row(str(problem), served=served)


@pytest.fixture
def device(monkeypatch):
    """Takes the place of everything that needs torch."""

    made = MadeUpDevice()
    made_up = {
        "device": {"Device": lambda index: made},
        "floors": {"measure_floors": lambda facts: header().floors},
        "row": {"Stage": types.SimpleNamespace, "bench_row": made.bench_row},
        "contestants": {"make_contestants": lambda names, answers: list(names)},
        "contestants.flex": {"Flex": types.SimpleNamespace(name="flex")},
    }
    for name, members in made_up.items():
        module = types.ModuleType(f"attune_bench.{name}")
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return made


@pytest.fixture
def server(tmp_path):
    """A server with canned answers, in the process."""
    from fake import FakeServer

    server = FakeServer(f"unix:{tmp_path}/fake.sock")
    yield server
    server.stop()


@pytest.fixture
def clock():
    from fake import FakeClock

    return FakeClock()
