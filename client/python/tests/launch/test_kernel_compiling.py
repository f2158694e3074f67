"""Code that the service has yet to compile: how long it is waited for, and what calls have meanwhile."""

from __future__ import annotations

import dataclasses

import pytest
from fake_answers import REVALIDATE, Answers, artifact, problem, work
from fake_service import Clock

from attune.background import compiling
from attune.background.kernel_cache import KernelCache
from attune.background.reason import Reason
from attune.errors import Unreachable
from attune.values import ArtifactState


def test_code_that_is_being_compiled_is_waited_for(cache: KernelCache, answers: Answers, clock: Clock) -> None:
    answers.state = ArtifactState.COMPILING
    entry = cache.find(problem(), 0)
    for asked, pause in enumerate((1, 2, 4, 8, 16, 30, 30), start=1):
        assert 0.8 * pause <= work(cache) <= pause
        clock.now = entry.due
        assert (len(answers.asked), entry.asked, entry.unsuitable.reason) == (asked, True, Reason.PENDING)
    assert (cache.state().pending, cache.wait(0.0)) == (1, False)
    answers.state = ArtifactState.READY
    work(cache)
    assert (entry.launch is not None, cache.state().pending, cache.wait(0.0)) == (True, 0, True)


def test_code_is_asked_for_once_the_service_says_that_it_is_there(cache: KernelCache, answers: Answers) -> None:
    answers.state = ArtifactState.COMPILING
    entry = cache.find(problem(), 0)
    work(cache)
    (done,) = answers.awaited
    answers.state = ArtifactState.READY
    assert (work(cache) > 0, len(answers.asked)) == (True, 1)
    done(True)
    assert work(cache) == REVALIDATE, "and is not asked for again"
    assert (entry.launch is not None, len(answers.asked)) == (True, 2)


def test_code_that_the_service_speaks_of_too_early_is_awaited_again(
    cache: KernelCache, answers: Answers, clock: Clock
) -> None:
    """Another variant takes the place of one that does not compile."""
    answers.state = ArtifactState.COMPILING
    entry = cache.find(problem(), 0)
    work(cache)
    answers.awaited[0](True)
    work(cache)
    assert (len(answers.awaited), len(answers.asked)) == (2, 2)
    clock.now = entry.due
    work(cache)
    assert (len(answers.awaited), len(answers.asked)) == (2, 3)


def test_a_service_that_does_not_say_when_code_is_there_is_asked_again(
    cache: KernelCache, answers: Answers, clock: Clock
) -> None:
    answers.state = ArtifactState.COMPILING
    entry = cache.find(problem(), 0)
    work(cache)
    answers.awaited[0](False)
    work(cache)
    assert len(answers.asked) == 1
    answers.state, clock.now = ArtifactState.READY, entry.due
    work(cache)
    assert entry.launch is not None


def test_only_so_much_code_is_awaited_at_once(
    cache: KernelCache, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "_MOST_AWAITED", 2)
    answers.state = ArtifactState.COMPILING
    for length in (16, 17, 18):
        cache.find(problem(length), 0)
    work(cache)
    assert (len(answers.asked), len(answers.awaited)) == (3, 2)


def test_a_call_waits_once_for_code_that_is_being_compiled(
    cache: KernelCache, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers.state = ArtifactState.COMPILING
    entry = cache.find(problem(), 0)
    work(cache)
    monkeypatch.setattr(cache, "_settings", dataclasses.replace(cache._settings, wait=60.0))
    monkeypatch.setattr(cache, "_wake", lambda: True)
    monkeypatch.setattr(cache._changed, "wait_for", lambda *arguments: pytest.fail("waits"))
    assert cache.look(entry).launch is None


def test_a_kernel_stays_in_use_while_the_next_is_being_compiled(
    cache: KernelCache, answers: Answers, clock: Clock
) -> None:
    entry = cache.find(problem(), 0)
    work(cache)
    answers.artifact, answers.is_served, answers.state = "second", 2, ArtifactState.COMPILING
    clock.now += REVALIDATE
    pause = work(cache)
    assert (artifact(entry), entry.launch is not None, cache.state().replaced) == ("first", True, 0)
    answers.state = ArtifactState.READY
    clock.now += pause
    work(cache)
    assert (artifact(entry), cache.state().replaced) == ("second", 1)


def test_what_is_being_compiled_when_the_service_is_lost_is_unreachable(
    cache: KernelCache, answers: Answers, clock: Clock
) -> None:
    answers.state = ArtifactState.COMPILING
    entry = cache.find(problem(), 0)
    clock.now += work(cache)
    answers.refuses_with = Unreachable("gone")
    work(cache)
    assert (entry.asked, entry.unsuitable.reason) == (False, Reason.UNREACHABLE)
