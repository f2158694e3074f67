"""Which calls of a contest are computed by what, what is timed, and who wins."""

from __future__ import annotations

import dataclasses
import threading

import pytest
from contest_times import CALLS, PROBLEM, STREAM, baseline, timing
from fake_driver import FakeDriver
from fake_service import FakeAnswer

from attune.background import contest as contests
from attune.background.contest import PAIRS, WARM_UP, Contest, Turn, is_contested
from attune.background.reason import Reason
from attune.background.records import Recorded, Verdict, recorded, report
from attune.cuda import CudaError
from attune.cuda.driver import Capture
from attune.problem import Problem
from attune.values import Baseline, Policy, Provenance

RIVAL = "torch-sdpa 2.15"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver({})
    monkeypatch.setattr(contests, "driver", lambda: fake)
    monkeypatch.setattr(contests, "_pools", {})
    return fake


class Calls:
    """Of one contest, one after another; `ours` says who computed each."""

    def __init__(self, driver: FakeDriver, known: Recorded | None = None) -> None:
        self.driver = driver
        self.rival = RIVAL
        self.verdicts: list[Verdict] = []
        self.ours: list[bool] = []
        self.turns: list[Turn] = []
        self.kernel_us = self.rival_us = 10.0
        self.contest = Contest(0, lambda: self.rival, lambda _, verdict: self.verdicts.append(verdict), known)

    def __call__(self, count: int = 1) -> Turn:
        for _ in range(count):
            with self.contest.turn(STREAM) as turn:
                self.driver.now += self.kernel_us if turn.ours else self.rival_us
            self.ours.append(turn.ours)
            self.turns.append(turn)
        return turn

    def timed(self) -> int:
        return sum(turn.events is not None for turn in self.turns)


@pytest.fixture
def calls(driver: FakeDriver) -> Calls:
    return Calls(driver)


def test_the_calls_take_turns_so_that_a_drift_weighs_on_both_alike(calls: Calls) -> None:
    calls(CALLS)
    assert calls.ours == [True, False, False, True] * (CALLS // 4)


def test_two_calls_of_each_warm_up_and_are_not_timed(calls: Calls) -> None:
    calls(WARM_UP)
    assert (calls.ours.count(True), calls.timed(), calls.driver.events) == (2, 0, 0)
    calls()
    assert calls.timed() == 1


@pytest.mark.parametrize(
    ("rival_us", "faster"), [(10.1, False), (10.19, False), (10.21, True), (8.0, False), (50.0, True)]
)
def test_sdpa_keeps_the_calls_unless_the_kernel_wins_by_two_percent(
    calls: Calls, rival_us: float, faster: bool
) -> None:
    calls.rival_us = rival_us
    calls(CALLS)
    assert calls.verdicts == []
    turn = calls()
    (verdict,) = calls.verdicts
    assert (verdict.faster, turn.ours, turn.events) == (faster, faster, None)
    assert verdict.ratio == pytest.approx(rival_us / 10.0)
    assert faster or turn.unsuitable.reason is Reason.SLOWER


def test_one_disturbed_pair_decides_nothing(calls: Calls) -> None:
    calls.rival_us = 11.0
    calls(WARM_UP)
    calls.kernel_us = 500.0
    calls()
    calls.kernel_us = 10.0
    calls(CALLS)
    assert [verdict.faster for verdict in calls.verdicts] == [True]


def test_it_is_decided_once(calls: Calls) -> None:
    calls(CALLS + 10)
    assert len(calls.verdicts) == 1


def test_nothing_is_timed_beyond_what_decides(calls: Calls) -> None:
    """Where the device is far behind, the times come late."""
    calls.driver.behind = True
    calls(500)
    assert calls.timed() == 2 * PAIRS
    assert set(calls.ours[CALLS:]) == {False}
    assert calls.turns[-1].unsuitable.reason is Reason.CONTEST
    calls.driver.catch_up()
    calls()
    assert len(calls.verdicts) == 1


def test_samples_are_bound_to_the_device_where_it_is_behind_and_to_the_host_otherwise(driver: FakeDriver) -> None:
    for behind in (True, False):
        calls = Calls(driver)
        driver.behind = behind
        calls(CALLS)
        driver.behind = False
        driver.catch_up()
        calls()
        assert [verdict.of_device for verdict in calls.verdicts] == [behind]


def test_the_kinds_are_counted_apart(calls: Calls) -> None:
    """The kernel wins where the host is waited for, and loses on the device."""
    driver = calls.driver
    calls(WARM_UP)
    calls.kernel_us, calls.rival_us = 5.0, 10.0
    calls(2 * (PAIRS - 1))  # of the host
    driver.behind = True
    calls.kernel_us, calls.rival_us = 10.0, 5.0
    for _ in range(PAIRS):
        calls(2)
        driver.catch_up()
    driver.behind = False
    calls()
    (verdict,) = calls.verdicts
    assert (verdict.of_device, verdict.faster, verdict.ratio) == (True, False, 0.5)


@pytest.mark.parametrize("behind", [(True, False), (False, True)])
def test_a_pair_with_one_call_that_the_device_waited_for_is_the_hosts(calls: Calls, behind: tuple[bool, bool]) -> None:
    calls(WARM_UP)
    for _ in range(PAIRS):
        for calls.driver.behind in behind:
            calls()
            calls.driver.catch_up()
    calls.driver.behind = False
    calls()
    assert [verdict.of_device for verdict in calls.verdicts] == [False]


def test_events_are_used_again(driver: FakeDriver) -> None:
    for _ in range(3):
        Calls(driver)(CALLS + 1)
    assert driver.events == 2, "one call at a time needs two"


@pytest.mark.parametrize(
    ("known", "ours"),
    [(None, False), (Recorded(True, False, 12.0, 10.0), True), (Recorded(False, False, 8.0, 10.0), False)],
)
def test_under_capture_nothing_is_timed_and_what_is_recorded_decides(
    driver: FakeDriver, known: Recorded | None, ours: bool
) -> None:
    calls = Calls(driver, known)
    calls(WARM_UP + 1)
    driver.captures[STREAM] = Capture(1, "graph")
    touched = dict(driver.recorded)
    turn = calls(3)
    assert (turn.ours, turn.number, driver.recorded) == (ours, -1, touched)
    assert ours or turn.unsuitable.reason is Reason.UNDECIDED
    driver.captures.clear()
    calls(CALLS)
    assert len(calls.verdicts) == 1


def test_what_is_recorded_of_other_backends_decides_no_capture(driver: FakeDriver) -> None:
    calls = Calls(driver, Recorded(True, False, 12.0, 10.0))
    driver.captures[STREAM] = Capture(1, "graph")
    calls.rival = f"{RIVAL} (math)"
    assert not calls().ours


def test_other_backends_start_it_anew(calls: Calls) -> None:
    calls.rival_us = 50.0
    calls(CALLS - 1)
    calls.rival, calls.rival_us = f"{RIVAL} (math)", 9.0
    calls(CALLS + 1)
    (verdict,) = calls.verdicts
    assert (verdict.faster, verdict.rival) == (False, f"{RIVAL} (math)")


def test_backends_that_go_on_changing_leave_sdpa(calls: Calls) -> None:
    calls.rival_us = 50.0
    for number in range(100):
        calls.rival = f"{RIVAL} ({number})"
        calls()
    assert [verdict.faster for verdict in calls.verdicts] == [False]
    assert "could not be timed" in calls.turns[-1].unsuitable.detail


def test_a_call_that_fails_is_not_timed_and_its_pair_not_counted(calls: Calls) -> None:
    calls.rival_us = 11.0
    calls(WARM_UP + 1)
    with pytest.raises(MemoryError), calls.contest.turn(STREAM):
        calls.driver.now += 1000.0
        raise MemoryError
    assert calls.verdicts == []
    calls(2 * PAIRS)
    assert calls.verdicts == []
    calls()
    assert [verdict.ratio for verdict in calls.verdicts] == [pytest.approx(1.1)]


def test_the_first_of_a_pair_may_fail_as_well(calls: Calls) -> None:
    calls.rival_us = 11.0
    calls(WARM_UP)
    with pytest.raises(MemoryError), calls.contest.turn(STREAM):
        raise MemoryError
    calls(1 + 2 * PAIRS)
    assert calls.verdicts == []
    calls()
    assert [verdict.ratio for verdict in calls.verdicts] == [pytest.approx(1.1)]


def test_a_driver_without_events_leaves_sdpa(calls: Calls) -> None:
    calls.driver.recording_fails_with = CudaError("no event", reason="CUDA_ERROR_UNKNOWN")
    calls(100)
    assert [verdict.faster for verdict in calls.verdicts] == [False]
    assert not calls.ours[-1]


def test_a_call_beside_one_that_is_being_timed_is_sdpas_and_waits_for_nothing(calls: Calls) -> None:
    calls(WARM_UP)
    with calls.contest.turn(STREAM) as first:
        beside = threading.Thread(target=calls)
        beside.start()
        beside.join(60)
        assert not beside.is_alive()
    assert (first.number, calls.turns[-1].number, calls.ours[-1]) == (WARM_UP, -1, False)


def test_threads(calls: Calls) -> None:
    calls.rival_us = 30.0
    together = [threading.Thread(target=calls, args=(200,)) for _ in range(8)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert len(calls.verdicts) == 1
    numbers = [turn.number for turn in calls.turns if turn.number >= 0]
    assert sorted(numbers) == list(range(len(numbers))), "no turn is taken twice"


@pytest.mark.parametrize(
    ("text", "contested"),
    [
        ("b1.h2.q16.d64.f16", True),
        ("b1.h4.kvh2.q16.kv32.d64.bf16.causal.bshd", True),
        ("b1.h2.q16.kv32.d64.f16.causal-br", False),
        ("b1.h2.q16.d64.f16.window8", False),
        ("b1.h2.q16.d64.f16.softcap20", False),
        ("b1.h2.q16.d64.f16.lse", False),
        ("b1.h2.q16.d64.f16.sinks", False),
        ("b1.h2.q16.d64.f16.varlen", False),
        ("b1.h2.q16.d64.f16.kve4m3", False),
        ("b1.h2.q1.kv16.d64.f16.page16", False),
    ],
)
def test_contested_is_what_plain_sdpa_computes(text: str, contested: bool) -> None:
    assert is_contested(Problem.parse(text)) is contested


def known(*baselines: Baseline, rival: str = RIVAL, **fields: object) -> tuple[bool, bool] | None:
    answer = FakeAnswer(PROBLEM, "a" * 64, timing=timing(10.0), baselines=baselines)
    found = recorded(dataclasses.replace(answer, **fields), Policy.HOT, rival)
    return None if found is None else (found.faster, found.in_place)


@pytest.mark.parametrize(
    ("contender", "median_us", "found"),
    [
        ("sdpa", 9.9, (False, False)),
        ("sdpa", 10.1, (True, False)),
        (RIVAL, 9.9, (False, False)),
        ("torch-sdpa 2.11", 9.9, (False, False)),
        ("torch-sdpa 2.11 (math)", 9.9, None),
        ("flash", 1.0, None),
        ("torch-sdpa-flash 2.11", 1.0, None),
    ],
)
def test_what_is_recorded_of_torchs_sdpa_counts(contender: str, median_us: float, found: object) -> None:
    assert known(baseline(contender, median_us)) == found


def test_what_is_recorded_of_the_same_backends_counts() -> None:
    assert known(baseline(f"{RIVAL} (math)", 9.0), rival=f"{RIVAL} (math)") == (False, False)
    assert known(baseline("sdpa", 9.0), rival=f"{RIVAL} (math)") is None


def test_the_newest_counts() -> None:
    assert known(baseline("sdpa", 9.0, minute=1), baseline("sdpa", 11.0, minute=2)) == (True, False)
    assert known(baseline("sdpa", 9.0, minute=3), baseline("sdpa", 11.0, minute=2)) == (False, False)


def test_another_policy_another_problem_or_no_time_counts_for_nothing() -> None:
    assert known(baseline("sdpa", 9.0, policy=Policy.COLD)) is None
    assert known(baseline("sdpa", 9.0, problem=Problem.parse("b1.h2.q32.d64.f16"))) is None
    assert known(baseline("sdpa", 9.0), timing=None) is None


def verdict_of(faster: bool = True, of_device: bool = True) -> Verdict:
    return Verdict(faster, of_device, RIVAL, 1.5, 1.4, 1.6, 20.0, 30.0)


def test_a_report_relates_to_the_answers_time_and_decides_for_other_processes() -> None:
    answer = FakeAnswer(PROBLEM, "a" * 64, timing=timing(10.0))
    told = report(answer, verdict_of())
    assert (told.contender, told.median_us, told.low_us, told.high_us, told.device) == (
        RIVAL,
        15.0,
        14.0,
        16.0,
        "cuda:0",
    )
    assert "30.00 us against 20.00 us" in told.note
    own = baseline(told.contender, told.median_us, told.note)
    assert known(own) == (True, True)
    assert known(own, baseline("sdpa", 9.0, minute=9)) == (True, True), "it was found in place"
    assert known(own, artifact_sha256="b" * 64) == (True, False), "of another kernel"


@pytest.mark.parametrize(("median_us", "faster"), [(10.1, False), (10.3, True)])
def test_what_a_contest_found_decides_by_its_margin(median_us: float, faster: bool) -> None:
    answer = FakeAnswer(PROBLEM, "a" * 64, timing=timing(10.0))
    assert known(baseline(RIVAL, median_us, report(answer, verdict_of()).note)) == (faster, True)


def test_only_the_devices_verdict_of_a_timed_problem_is_reported() -> None:
    answer = FakeAnswer(PROBLEM, "a" * 64, timing=timing(10.0))
    assert report(answer, verdict_of(of_device=False)) is None
    assert report(answer, Verdict(False, True, RIVAL)) is None
    assert report(dataclasses.replace(answer, timing=None), verdict_of()) is None
    assert report(dataclasses.replace(answer, provenance=Provenance.NEAREST), verdict_of()) is None
