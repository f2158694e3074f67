"""Problems that are not asked for, because the answer to another one holds for them."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable

import pytest
from fake_answers import HOLD, REVALIDATE, Answers, artifact, work
from fake_service import Clock, FakeAnswer

from attune.background import followers
from attune.background.entry import Entry
from attune.background.kernel_cache import KernelCache
from attune.background.reason import Reason
from attune.background.service import Gpu
from attune.errors import NotFound
from attune.problem import Problem
from attune.values import ArtifactState, Axis, Domain


def decode(length: int, batch: int = 1) -> Problem:
    return Problem.parse(f"b{batch}.h2.q1.kv{length}.d64.f16")


def octave(length: int) -> tuple[int, int]:
    low = 1 << (length.bit_length() - 1)
    return low, 2 * low - 1


class RangedAnswers(Answers):
    """Every answer holds for the octave of its problem's length, and of its batch."""

    first, last = 0, 1 << 24  # no range goes beyond these lengths

    def answer(self, problem: Problem, index: int, *, kept: bool) -> FakeAnswer:
        answer = super().answer(problem, index, kept=kept)
        return dataclasses.replace(answer, domains=self.domains(problem))

    def domains(self, problem: Problem) -> tuple[Domain, ...]:
        low, high = octave(problem.seq_kv)
        of_kv = Domain(Axis.KV, max(low, self.first), min(high, self.last))
        return of_kv, Domain(Axis.BATCH, *octave(problem.batch))


@pytest.fixture
def answers(clock: Clock) -> RangedAnswers:
    return RangedAnswers(clock)


@pytest.fixture
def contested(cache: KernelCache, answers: RangedAnswers) -> KernelCache:
    """Whose kernels are timed against SDPA."""
    return KernelCache(cache._settings, lambda index: Gpu("NVIDIA L4", ""), lambda: False, lambda: "torch-sdpa 2.15")


def test_a_growing_length_is_asked_for_once_an_octave(cache: KernelCache, answers: RangedAnswers) -> None:
    for length in range(1, 16385):
        entry = cache.find(decode(length), 0)
        work(cache)
        assert entry.kernel is not None
        assert entry.kernel.answer.problem == decode(length)
    assert len(answers.asked) == 15
    state = cache.state()
    assert (state.questions, state.followed) == (15, 16384 - 15)
    assert state.kernels <= followers.MOST + 15
    assert len(cache._followers._followers) <= followers.MOST


def test_a_call_has_the_kernel_of_a_range_at_once(cache: KernelCache, answers: RangedAnswers) -> None:
    cache.find(decode(1024), 0)
    work(cache)
    entry = cache.find(decode(1025), 0)
    assert entry.launch is not None
    assert entry.kernel.answer.recipe == "as always, at 1025"
    assert not entry.asked
    assert cache.find(decode(2048), 0).launch is None


def test_only_its_own_axis_and_device_are_in_a_range(cache: KernelCache, answers: RangedAnswers) -> None:
    cache.find(decode(1024, batch=4), 0)
    work(cache)
    assert cache.find(decode(1024, batch=7), 0).launch is not None
    assert cache.find(decode(1025, batch=7), 0).launch is None, "both lengths are others"
    assert cache.find(decode(1024, batch=5), 1).launch is None
    assert cache.find(dataclasses.replace(decode(1025, batch=4), lse=True), 0).launch is None


def test_questions_that_the_answer_to_an_earlier_one_settles_are_not_asked(
    cache: KernelCache, answers: RangedAnswers
) -> None:
    entries = [cache.find(decode(length), 0) for length in range(1024, 1100)]
    work(cache)
    assert answers.asked == [str(decode(1024))]
    assert all(entry.launch is not None for entry in entries)
    assert cache.wait(0)


def test_a_miss_is_one_of_its_range(cache: KernelCache, answers: RangedAnswers, clock: Clock) -> None:
    answers.refuses_with = NotFound("none", metadata={"holds_for": "kv 1024..2047, batch 1..1"})
    for length in (1024, 1025, 1500):
        cache.find(decode(length), 0)
        work(cache)
    entry = cache.find(decode(1500), 0)
    assert entry.unsuitable.reason is Reason.NO_ANSWER
    assert len(answers.asked) == 1
    clock.now += 2 * HOLD
    answers.refuses_with = None
    cache.find(decode(1500), 0)
    cache.find(decode(1025), 0)
    work(cache)
    assert answers.asked == [str(decode(1024)), str(decode(1500))]
    assert cache.find(decode(1025), 0).launch is not None


def test_code_that_is_compiled_is_asked_for_by_one_problem(
    cache: KernelCache, answers: RangedAnswers, clock: Clock
) -> None:
    answers.state = ArtifactState.COMPILING
    cache.find(decode(1024), 0)
    work(cache)
    follower = cache.find(decode(1025), 0)
    assert follower.unsuitable.reason is Reason.PENDING
    clock.now += 1.5
    cache.find(decode(1025), 0)
    work(cache)
    assert set(answers.asked) == {str(decode(1024))}
    answers.state = ArtifactState.READY
    clock.now += 10
    work(cache)
    assert cache.find(decode(1025), 0).launch is not None
    assert set(answers.asked) == {str(decode(1024))}


def test_a_replaced_kernel_replaces_those_of_its_range(
    cache: KernelCache, answers: RangedAnswers, clock: Clock
) -> None:
    cache.find(decode(1024), 0)
    work(cache)
    follower = cache.find(decode(1025), 0)
    answers.artifact, answers.is_served = "second", 2
    clock.now += REVALIDATE
    work(cache)
    assert follower.launch is None, "its next call looks anew"
    assert artifact(cache.look(follower)) == "second"
    assert set(answers.asked) == {str(decode(1024))}


def test_a_length_that_left_the_range_is_asked_for(cache: KernelCache, answers: RangedAnswers, clock: Clock) -> None:
    cache.find(decode(1024), 0)
    work(cache)
    inside, outside = cache.find(decode(1025), 0), cache.find(decode(1500), 0)
    answers.last, answers.is_served = 1499, 2
    clock.now += REVALIDATE
    work(cache)
    answers.first, answers.last = 1500, 1 << 24
    for entry in (inside, outside):
        cache.look(entry)
    work(cache)
    assert inside.launch is not None
    assert outside.launch is not None
    assert answers.asked[2:] == [str(decode(1500))], "1024 was asked twice"


def test_what_is_pinned_keeps_its_kernel(cache: KernelCache, answers: RangedAnswers, clock: Clock) -> None:
    cache.find(decode(1024), 0)
    work(cache)
    follower = cache.find(decode(1025), 0)
    cache.pin(follower)
    answers.artifact, answers.is_served = "second", 2
    clock.now += REVALIDATE
    work(cache)
    assert artifact(follower) == "first"
    assert follower.launch is not None


def test_what_is_dropped_takes_its_range_along(cache: KernelCache, answers: RangedAnswers) -> None:
    lead = cache.find(decode(1024), 0)
    work(cache)
    follower = cache.find(decode(1025), 0)
    with cache._changed:
        cache._drop(lead)
    assert (follower.launch, follower.dropped) == (None, True)
    assert not cache._followers.leads(lead)
    assert cache.find(decode(1025), 0).launch is None
    work(cache)
    assert answers.asked == [str(decode(1024)), str(decode(1025))]


def test_a_refused_launch_is_tried_again_without_a_question(
    cache: KernelCache, answers: RangedAnswers, clock: Clock
) -> None:
    cache.find(decode(1024), 0)
    work(cache)
    follower = cache.find(decode(1025), 0)
    cache.refused(follower, RuntimeError("no memory"))
    assert cache.look(follower).launch is None
    clock.now += HOLD
    assert cache.look(follower).launch is not None
    assert len(answers.asked) == 1


def test_an_answer_that_does_not_fit_its_recipe_speaks_for_nobody(
    monkeypatch: pytest.MonkeyPatch, cache: KernelCache, answers: RangedAnswers
) -> None:
    cache.find(decode(1024), 0)
    work(cache)

    def fails(self: FakeAnswer, problem: Problem) -> None:
        raise ValueError("planned")

    monkeypatch.setattr(FakeAnswer, "at", fails)
    cache.find(decode(1025), 0)
    work(cache)
    assert answers.asked == [str(decode(1024)), str(decode(1025))]


@pytest.mark.parametrize("ends", ["pin", "refused"])
def test_those_who_share_a_contest_that_ends_without_a_verdict_have_another(
    contested: KernelCache, answers: RangedAnswers, ends: str
) -> None:
    lead = contested.find(decode(1024), 0)
    work(contested)
    follower = contested.find(decode(1025), 0)
    shared = follower.contest
    assert shared is lead.contest is not None
    if ends == "pin":
        contested.pin(lead)
    else:
        contested.refused(lead, RuntimeError("no memory"))
    contested.look(follower)
    work(contested)
    assert follower.contest not in (None, shared)
    assert answers.asked == [str(decode(1024)), str(decode(1025))]


def test_those_who_follow_a_pinned_kernel_have_its_successor(
    cache: KernelCache, answers: RangedAnswers, clock: Clock
) -> None:
    lead = cache.find(decode(1024), 0)
    work(cache)
    cache.pin(lead)
    follower = cache.find(decode(1025), 0)
    assert artifact(follower) == "first"
    answers.artifact, answers.is_served = "second", 2
    clock.now += REVALIDATE
    work(cache)
    cache.look(follower)
    work(cache)
    assert (artifact(lead), artifact(follower)) == ("first", "second")


def test_those_who_follow_what_is_pinned_without_a_kernel_ask_for_themselves(
    cache: KernelCache, answers: RangedAnswers
) -> None:
    answers.refuses_with = NotFound("none", metadata={"holds_for": "kv 1024..2047, batch 1..1"})
    lead = cache.find(decode(1024), 0)
    work(cache)
    cache.pin(lead)
    answers.refuses_with = None
    follower = cache.find(decode(1025), 0)
    work(cache)
    assert (lead.unsuitable.reason, follower.launch is not None) == (Reason.DETERMINISTIC, True)


def in_another_thread(call: Callable[[], object]) -> bool:
    """Whether it gets through."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()


def test_a_call_follows_while_the_thread_asks(
    cache: KernelCache, answers: RangedAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.find(decode(1024), 0)
    work(cache)
    cache.find(decode(4096), 0)
    asking, released = threading.Event(), threading.Event()

    def hangs(problem: Problem, index: int, *, kept: bool) -> FakeAnswer:
        asking.set()
        released.wait(20)
        raise NotFound("none")

    monkeypatch.setattr(answers, "answer", hangs)
    thread = threading.Thread(target=cache.work)
    thread.start()
    assert asking.wait(60)
    found: list[Entry] = []
    assert in_another_thread(lambda: found.append(cache.find(decode(1025), 0)))
    assert found[0].launch is not None
    released.set()
    thread.join()


def test_a_launch_is_worked_out_while_others_may_change_what_is_known(
    cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.find(decode(1024), 0)
    work(cache)
    at = FakeAnswer.at

    def change() -> None:
        with cache._changed:
            pass

    def slow(self: FakeAnswer, problem: Problem) -> FakeAnswer | None:
        assert in_another_thread(change)
        return at(self, problem)

    monkeypatch.setattr(FakeAnswer, "at", slow)
    assert cache.find(decode(1025), 0).launch is not None


def test_what_a_launch_was_worked_out_of_may_be_gone_when_that_is_done(
    cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead = cache.find(decode(1024), 0)
    work(cache)
    at = FakeAnswer.at

    def slow(self: FakeAnswer, problem: Problem) -> FakeAnswer | None:
        cache.refused(lead, RuntimeError("no memory"))
        return at(self, problem)

    monkeypatch.setattr(FakeAnswer, "at", slow)
    follower = cache.find(decode(1025), 0)
    assert (follower.kernel, follower.lead, follower.asked) == (None, None, True)
