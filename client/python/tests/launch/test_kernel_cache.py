"""What is asked of the service, and when: the background thread's work, done here step by step."""

from __future__ import annotations

import math
import threading

import pytest
from fake_answers import HOLD, REVALIDATE, Answers, artifact, problem, work
from fake_driver import FakeDriver
from fake_service import Clock, FakeAnswer, FakeKernel

from attune.background import capture, kernel_cache
from attune.background.entry import Entry
from attune.background.kernel_cache import KernelCache
from attune.background.reason import Reason, Unsuitable
from attune.cuda import CudaError
from attune.errors import AttuneError, FailedPrecondition, NotFound, Unreachable
from attune.values import ArtifactState


def test_a_call_finds_the_kernel_once_the_thread_has_asked(cache: KernelCache, answers: Answers) -> None:
    entry = cache.find(problem(), 0)
    assert (entry.kernel, entry.unsuitable.reason, answers.asked) == (None, Reason.PENDING, [])
    work(cache)
    assert cache.find(problem(), 0).kernel is not None
    assert len(answers.asked) == 1


def test_a_problem_is_asked_once_however_often_it_is_called(cache: KernelCache, answers: Answers) -> None:
    for _ in range(3):
        cache.find(problem(), 0)
    work(cache)
    cache.find(problem(), 0)
    work(cache)
    assert answers.asked == [str(problem())]


def test_devices_are_different_questions(cache: KernelCache, answers: Answers) -> None:
    cache.find(problem(), 0)
    cache.find(problem(), 1)
    work(cache)
    assert len(answers.asked) == 2


def test_with_nothing_to_do_it_looks_again_after_the_interval(cache: KernelCache) -> None:
    assert work(cache) == math.inf
    cache.find(problem(), 0)
    assert work(cache) == REVALIDATE


def test_a_replaced_kernel_is_in_force_after_the_interval(cache: KernelCache, answers: Answers, clock: Clock) -> None:
    entry = cache.find(problem(), 0)
    work(cache)
    answers.artifact, answers.is_served = "second", 2
    clock.now += REVALIDATE
    work(cache)
    assert artifact(entry) == "second"
    assert entry.launch == entry.kernel.launch
    assert cache.state().replaced == 1


def test_a_roll_back_to_nothing_takes_the_kernel_away(cache: KernelCache, answers: Answers, clock: Clock) -> None:
    entry = cache.find(problem(), 0)
    work(cache)
    answers.refuses_with, answers.is_served = NotFound("rolled back"), 2
    clock.now += REVALIDATE
    work(cache)
    assert (entry.kernel, entry.launch, entry.unsuitable.reason) == (None, None, Reason.NO_ANSWER)


def test_kernels_are_not_asked_for_again_while_nothing_changes(
    cache: KernelCache, answers: Answers, clock: Clock
) -> None:
    for length in range(1, 11):
        cache.find(problem(length), 0)
    work(cache)
    clock.now += REVALIDATE
    work(cache)
    asked = len(answers.asked)
    for _ in range(5):
        clock.now += REVALIDATE
        work(cache)
    assert len(answers.asked) == asked
    clock.now += 900
    work(cache)
    assert len(answers.asked) == asked + 10, "all the same, once in a while"


def test_an_answer_that_is_the_same_keeps_the_kernel(cache: KernelCache, answers: Answers, clock: Clock) -> None:
    entry = cache.find(problem(), 0)
    work(cache)
    kernel = entry.kernel
    clock.now += REVALIDATE
    work(cache)
    assert len(answers.asked) == 2
    assert entry.kernel is kernel
    assert cache.state().replaced == 0


def test_a_service_that_cannot_say_what_it_serves_is_asked_for_every_kernel(
    cache: KernelCache, answers: Answers, clock: Clock
) -> None:
    cache.find(problem(), 0)
    answers.is_served = FailedPrecondition("not now")
    work(cache)
    for _ in range(3):
        clock.now += REVALIDATE
        work(cache)
    assert len(answers.asked) == 4


def test_kernels_stay_in_use_while_nobody_answers_and_are_checked_afterwards(
    cache: KernelCache, answers: Answers, clock: Clock
) -> None:
    entry = cache.find(problem(), 0)
    work(cache)
    answers.is_served = answers.refuses_with = Unreachable("gone")
    clock.now += REVALIDATE
    answers.unreachable_until = clock.now + 5
    work(cache)
    assert artifact(entry) == "first"
    answers.is_served, answers.refuses_with, answers.artifact = 1, None, "second"
    clock.now += REVALIDATE
    work(cache)
    assert artifact(entry) == "second"


def test_a_service_lost_while_kernels_are_checked_leaves_them(
    cache: KernelCache, answers: Answers, clock: Clock
) -> None:
    entries = [cache.find(problem(length), 0) for length in (1, 2, 3)]
    work(cache)
    answers.refuses_with = Unreachable("gone")
    clock.now += REVALIDATE
    work(cache)
    assert [artifact(entry) for entry in entries] == ["first"] * 3
    answers.refuses_with, answers.artifact = None, "second"
    clock.now += 6
    work(cache)
    assert [artifact(entry) for entry in entries] == ["second"] * 3


@pytest.mark.parametrize("error", [NotFound("no answer"), FailedPrecondition("no driver")])
def test_what_has_no_kernel_is_asked_for_ever_more_seldom(
    cache: KernelCache, answers: Answers, clock: Clock, error: AttuneError
) -> None:
    answers.refuses_with = error
    waits = []
    for _ in range(6):
        entry = cache.find(problem(), 0)
        work(cache)
        waits.append(entry.due - clock.now)
        clock.now = entry.due
    assert len(answers.asked) == 6
    assert all(0.8 * wanted <= wait <= wanted for wanted, wait in zip([30, 60, 120, 240, 240, 240], waits, strict=True))


def test_the_waits_begin_anew_after_a_kernel(cache: KernelCache, answers: Answers, clock: Clock) -> None:
    answers.refuses_with = NotFound("no answer")
    entry = cache.find(problem(), 0)
    for _ in range(4):
        cache.look(entry)
        work(cache)
        clock.now = entry.due
    answers.refuses_with = None
    cache.look(entry)
    work(cache)
    assert entry.launch is not None
    answers.refuses_with, answers.is_served = NotFound("rolled back"), 2
    clock.now += REVALIDATE
    work(cache)
    assert 0 < entry.due - clock.now <= HOLD


def test_an_answer_without_code_says_why(cache: KernelCache, answers: Answers) -> None:
    answers.state = ArtifactState.NONE
    entry = cache.find(problem(), 0)
    work(cache)
    assert entry.unsuitable.reason is Reason.NOT_LOADED
    assert "nvcc: error" in entry.unsuitable.detail


def test_it_is_asked_for_at_once_when_something_else_is_served(
    cache: KernelCache, answers: Answers, clock: Clock
) -> None:
    answers.refuses_with = NotFound("no answer")
    cache.find(problem(), 0)
    work(cache)
    clock.now += REVALIDATE
    work(cache)
    cache.find(problem(), 0)
    work(cache)
    answers.refuses_with, answers.is_served = None, 2
    clock.now += REVALIDATE
    work(cache)
    cache.find(problem(), 0)
    work(cache)
    assert cache.find(problem(), 0).kernel is not None


def test_a_kernel_that_cannot_be_loaded_is_no_end_of_the_thread(
    cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(answer: FakeAnswer, device: int) -> FakeKernel:
        raise MemoryError("no room")

    monkeypatch.setattr(kernel_cache, "load", load)
    entry = cache.find(problem(), 0)
    work(cache)
    assert entry.unsuitable.reason is Reason.NOT_LOADED


def test_questions_do_not_wait_for_all_checks_nor_checks_for_all_questions(
    cache: KernelCache, answers: Answers, clock: Clock
) -> None:
    for length in (1, 2, 3):
        cache.find(problem(length), 0)
    work(cache)
    clock.now += REVALIDATE
    cache.work()
    answers.asked.clear()
    for length in (4, 5, 6):
        cache.find(problem(length), 0)
    for _ in range(6):
        cache.work()
    old = [asked in {str(problem(length)) for length in (1, 2, 3)} for asked in answers.asked]
    assert old in ([True, False] * 3, [False, True] * 3)


def test_what_the_driver_refused_to_launch_is_left_alone_for_a_while(
    cache: KernelCache, answers: Answers, clock: Clock
) -> None:
    entry = cache.find(problem(), 0)
    work(cache)
    cache.refused(entry, CudaError("no memory"))
    clock.now += HOLD - 1
    assert (cache.look(entry).launch, entry.unsuitable.reason, entry.asked) == (None, Reason.NOT_LAUNCHED, False)
    clock.now += 1
    cache.look(entry)
    work(cache)
    assert entry.launch is not None


def test_a_pinned_kernel_is_neither_replaced_nor_checked(cache: KernelCache, answers: Answers, clock: Clock) -> None:
    entry = cache.find(problem(), 0)
    work(cache)
    cache.pin(entry)
    answers.artifact, answers.is_served = "second", 2
    clock.now += REVALIDATE
    work(cache)
    assert (artifact(entry), len(answers.asked)) == ("first", 1)


def test_what_is_pinned_without_a_kernel_gets_none(cache: KernelCache, answers: Answers, clock: Clock) -> None:
    entry = cache.find(problem(), 0)
    cache.pin(entry)
    work(cache)
    answers.is_served = 2
    clock.now += REVALIDATE
    work(cache)
    assert (cache.look(entry).launch, entry.unsuitable.reason) == (None, Reason.DETERMINISTIC)
    assert (entry.asked, len(answers.asked)) == (False, 1)


def test_a_shape_that_no_service_is_asked_for(cache: KernelCache, answers: Answers, clock: Clock) -> None:
    entry = Entry(None, Unsuitable(Reason.SHAPE, "0 rows"), math.inf)
    cache.look(entry)
    clock.now += 1e9
    assert (cache.look(entry).asked, answers.asked) == (False, [])


def test_what_no_graph_may_have_is_wrapped_once(
    cache: KernelCache, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "driver", lambda: FakeDriver({}))
    entry = cache.find(problem(), 0)
    work(cache)
    entry.for_graphs = False
    assert entry.launch_of(entry.kernel) is entry.launch_of(entry.kernel) is not entry.kernel.launch


def test_threads_ask_once_together(cache: KernelCache, answers: Answers) -> None:
    together = threading.Barrier(8)

    def work_on(entries: list[Entry]) -> None:
        together.wait()
        for length in range(1, 200):
            entries.append(cache.find(problem(length), 0))

    found: list[list[Entry]] = [[] for _ in range(8)]
    threads = [threading.Thread(target=work_on, args=(entries,)) for entries in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(entries == found[0] for entries in found)
    work(cache)
    assert len(answers.asked) == len(set(answers.asked)) == 199
    assert cache.state().pending == 0


def test_of_two_threads_that_find_it_unasked_one_asks(cache: KernelCache, answers: Answers) -> None:
    entry = cache.find(problem(), 0)
    entry.asked = False  # as the other thread has seen it
    cache.look(entry)
    work(cache)
    assert len(answers.asked) == 1


def bounded(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(kernel_cache, name, limit)


def test_the_oldest_make_room_and_are_launched_no_longer(cache: KernelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, _MOST_KERNELS=8)
    entries = []
    for length in range(1, 100):
        entries.append(cache.find(problem(length), 0))
        work(cache)
        assert cache.state().kernels <= 8
    launched = [entry for entry in entries if entry.launch is not None]
    assert (len(launched), launched[-1]) == (cache.state().kernels, entries[-1])
    assert all(entry.dropped for entry in entries if entry.launch is None)


def test_one_that_was_dropped_while_it_was_asked_for_is_not_launched(
    cache: KernelCache, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = cache.find(problem(1), 0)

    def load(answer: FakeAnswer, device: int) -> FakeKernel:
        entry.dropped = True
        return FakeKernel(answer, [])

    monkeypatch.setattr(kernel_cache, "load", load)
    work(cache)
    assert entry.launch is None


def test_questions_are_bounded_and_asked_later(
    cache: KernelCache, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, _MOST_QUESTIONS=4)
    for length in range(1, 11):
        cache.find(problem(length), 0)
    assert cache.state().pending == 4
    work(cache)
    assert len(answers.asked) == 4
    cache.find(problem(10), 0)
    work(cache)
    assert cache.find(problem(10), 0).kernel is not None


def test_state_counts(cache: KernelCache, answers: Answers) -> None:
    cache.find(problem(1), 0)
    work(cache)
    answers.refuses_with = NotFound("no answer")
    cache.find(problem(2), 0)
    work(cache)
    cache.find(problem(3), 0)
    state = cache.state()
    assert (state.kernels, state.pending, state.without_kernel) == (1, 1, {"no_answer": 1})
    assert (state.questions, state.checks, state.replaced) == (2, 0, 0)


def test_a_closed_one_asks_nothing_more(cache: KernelCache, answers: Answers) -> None:
    entry = cache.find(problem(), 0)
    cache.close()
    work(cache)
    assert (answers.asked, entry.asked) == ([], False)
    assert (cache.look(entry).asked, cache.state().pending) == (False, 0)
