"""Ranges of lengths, of a real daemon: what is worked out is what it says when it is asked, and how often it is asked.
ATTUNE_BUILD is the build directory that has it."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import harness
import pytest

import attune
from attune.background import followers, kernel_cache, service
from attune.background.kernel_cache import KernelCache
from attune.background.service import Gpu
from attune.background.settings import ACCEPTABLE, Settings
from attune.problem import Problem
from attune.values import Answer, Policy, Provenance
from attune.values.domain import _LENGTHS

TUNED = ("b64.h1.q1.kv200.d32.f16", "b1.h1.q48.d32.f16")
ANY = (*ACCEPTABLE, Provenance.HEURISTIC)
LONGEST = 16384
NEAR = range(4, 64 * 200 + 1)  # six octaves around the tuned 200 keys, whose winner answers so far and no farther


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    if not harness.ATTUNED.exists():
        pytest.fail(f"'{harness.ATTUNED}' is not there; ATTUNE_BUILD must name a build directory")
    daemon = harness.Daemon(tmp_path_factory.mktemp("daemon")).start()
    with attune.Client(daemon.address, deadline=60.0) as client:
        yield client
    daemon.stop()


@pytest.fixture(scope="module")
def tuned(client):
    for problem in TUNED:
        client.tune(problem, strategy="random", max_trials=2, seed=1).result()
    return client


def neighbours(answer: Answer) -> list[Problem]:
    return [
        dataclasses.replace(answer.problem, **dict.fromkeys(_LENGTHS[domain.axis], length))
        for domain in answer.domains
        for length in range(domain.low, domain.high + 1)
    ]


@pytest.mark.parametrize(
    "problem", [*TUNED, "b64.h1.q1.kv150.d32.f16", "b1.h2.q5.kv77.d64.f16.causal-br", "b3.h2.q40.d64.bf16.lse"]
)
def test_what_is_worked_out_is_what_the_daemon_says(tuned, problem):
    answer = tuned.best(problem, domains=True)
    others = neighbours(answer)
    assert len(others) > 30
    codes = {answer.artifact_sha256}
    for other in others:
        asked, worked_out = tuned.best(other), answer.at(other)
        assert worked_out.recipe == asked.recipe, other
        assert worked_out.variant == asked.variant, other
        codes.add(asked.artifact_sha256)
    assert len(codes - {""}) <= 1, "one code, of which some answers came before it was compiled"


def test_a_miss_says_for_which_others_it_is_one(tuned):
    with pytest.raises(attune.NotFound) as caught:
        tuned.best("b5.h1.q1.kv1500.d128.f16", acceptable=ACCEPTABLE, domains=True)
    assert caught.value.metadata["holds_for"] == "kv 1024..2047, batch 4..7"
    with pytest.raises(attune.NotFound) as caught:
        tuned.best("b5.h1.q1.kv1500.d128.f16", acceptable=ACCEPTABLE)
    assert "holds_for" not in caught.value.metadata


@dataclasses.dataclass
class Launchable:
    answer: Answer
    device: int = 0

    def like(self, answer: Answer) -> Launchable:
        return Launchable(answer)

    def launch(self, *addresses: int) -> None:
        pass


class EveryModule:
    def has(self, sha256: str) -> bool:
        return True


@pytest.mark.parametrize("acceptable", [ACCEPTABLE, ANY], ids=["tuned", "any"])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sequences_that_grow_ask_little(monkeypatch, tuned, acceptable, dtype):
    """64 sequences from 1 to 16,384 keys; nobody has tuned bf16, and beyond NEAR the answer is a guess."""
    monkeypatch.setattr(service, "modules", EveryModule)
    monkeypatch.setattr(service, "check_code", lambda problem, answer: None)
    monkeypatch.setattr(kernel_cache, "check_code", lambda problem, answer: None)
    monkeypatch.setattr(kernel_cache, "load", lambda answer, device: Launchable(answer))
    settings = Settings(tuned, "opencl:0", Policy.HOT, acceptable, 3600.0, 0.0, 3600.0)
    cache = KernelCache(settings, lambda index: Gpu("CPU", ""), lambda: False)
    known: dict[str, Any] = {"with": 0}
    with contextlib.closing(cache):
        for length in range(1, LONGEST + 1):
            entry = cache.find(Problem.parse(f"b64.h1.q1.kv{length}.d32.{dtype}"), 0)
            while entry.asked:
                cache.work()
            known["with"] += entry.launch is not None
        state = cache.state()
    assert state.questions < 40
    assert state.followed + state.questions == LONGEST
    assert state.followed / LONGEST > 0.99
    answered = LONGEST if acceptable is ANY else len(NEAR) if dtype == "f16" else 0
    assert known["with"] == answered
    assert len(cache._entries) <= followers.MOST + state.questions
