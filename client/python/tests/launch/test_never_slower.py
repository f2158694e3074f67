"""attune.attention, timed against SDPA on a device whose times are made up."""

from __future__ import annotations

import contextlib
import math
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from contest_times import CALLS, STREAM, baseline
from fake_service import Clock, Service

torch = pytest.importorskip("torch")

from tensors import half  # noqa: E402
from timed_device import PROBLEM, Device, Q, decide, sdpa  # noqa: E402

import attune  # noqa: E402
from attune.background import capture  # noqa: E402
from attune.background.reason import Reason  # noqa: E402
from attune.cuda import CudaError  # noqa: E402
from attune.cuda.driver import Capture  # noqa: E402
from attune.flash_attn import flash_attn_func  # noqa: E402
from attune.torch import AttuneWarning, contest, direct, dispatch, process, state, warming  # noqa: E402
from attune.torch.dispatch import attend  # noqa: E402
from attune.torch.fallback import Stats  # noqa: E402
from attune.torch.options import options_of  # noqa: E402
from attune.values import Axis, Domain  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")

DECIDE = warming.decide


def entry() -> Any:
    """That of PROBLEM."""
    return next(iter(process._kernel_cache._entries.values()))


def wait_for(reports: int, device: Device) -> None:
    for _ in range(60_000):
        if len(device.reports) >= reports:
            return
        threading.Event().wait(0.001)
    raise AssertionError(f"{len(device.reports)} of {reports} reports")


def test_a_kernel_that_wins_computes_from_then_on_and_nothing_is_added_to_its_calls(device: Device) -> None:
    device.sdpa_us = 11.0
    decide(device)
    assert device.computed == (CALLS // 2 + 1, {"contest": CALLS // 2})
    assert (entry().launch, entry().contest) == (entry().kernel.launch, None)
    touched = dict(device.recorded)
    device.call(10)
    assert (device.stats.launched, device.recorded) == (CALLS // 2 + 11, touched)


def test_sdpa_keeps_the_calls_of_a_kernel_that_does_not_win(device: Device, service: Service) -> None:
    device.sdpa_us = 10.1
    decide(device)
    launches = len(service.launches)
    device.call(10)
    assert device.computed == (launches, {"contest": CALLS // 2, "slower": 11})
    assert (state().kernels, state().contests, state().without_kernel) == (0, 0, {"slower": 1})
    assert service.problems == [PROBLEM], "it is not asked again"


def test_whoever_computes_the_result_is_attention(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "empty_like", lambda like: sdpa(Q, Q, Q))  # FakeKernel writes nothing
    monkeypatch.setattr(dispatch, "new_output", lambda like: sdpa(Q, Q, Q))
    for _ in range(CALLS + 3):
        assert torch.equal(device.call(), sdpa(Q, Q, Q))


@pytest.mark.parametrize("dim", [64, 128])
def test_the_calls_of_a_slower_kernel_are_sdpas_without_a_further_look(
    device: Device, monkeypatch: pytest.MonkeyPatch, dim: int
) -> None:
    given = half(1, 2, 16, dim)[..., :64]

    def call(count: int) -> None:
        for _ in range(count):
            attend(device.stats, given, given, given, None, 0.0, False, None, False)

    call(CALLS + 1)
    assert state().without_kernel == {"slower": 1}
    monkeypatch.setattr(dispatch, "_attend_anew", lambda *arguments: pytest.fail("looks"))
    call(5)
    assert device.stats.fallbacks["slower"] == 6


def test_a_slower_kernel_is_warned_of_once_and_a_contest_never(device: Device) -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", AttuneWarning)
        device.behind = True
        device.call(CALLS + 5)
        assert given == []
        device.catch_up()
        device.call(5)
    (warning,) = given
    assert "(slower): SDPA is faster here, or within 2 %: 10.0 us against 10.0 us" in str(warning.message)


def test_while_it_goes_on_it_is_counted_as_a_contest(device: Device) -> None:
    device.call(5)
    assert (state().kernels, state().contests, state().without_kernel) == (0, 1, {})


def test_problems_that_sdpa_does_not_compute_are_the_kernels_at_once(device: Device) -> None:
    stats = Stats()
    for options in ({"softcap": 30.0}, {"return_lse": True}, {"causal": "bottom-right"}):
        options = {"causal": None, "window": None, "softcap": 0.0, "sinks": None, "return_lse": False, **options}
        given = options_of(False, **options, scale=None, enable_gqa=False)
        dispatch.attend_options(stats, Q[:, :, :8], Q, Q, None, 0.0, given)
    assert (stats.launched, stats.fallbacks) == (3, {})


def test_the_switch(device: Device) -> None:
    device.kernel_us = 100.0
    attune.configure(device="cuda:0", wait=60.0, never_slower=False)
    device.call(CALLS)
    assert (device.computed, device.recorded) == ((CALLS, {}), {})


def test_a_recorded_sdpa_that_is_faster_keeps_the_calls(device: Device) -> None:
    device.baselines = (baseline("sdpa", 9.9),)
    with pytest.warns(AttuneWarning, match=r"slower.*recorded: 9\.9 us against 10\.0 us"):
        device.call()
    device.call(9)
    assert (device.computed, device.recorded) == ((0, {"slower": 10}), {})


def test_a_recorded_sdpa_that_is_slower_is_timed_all_the_same(device: Device) -> None:
    device.baselines = (baseline("sdpa", 20.0),)
    device.kernel_us = 30.0
    device.call(CALLS + 1)
    assert state().without_kernel == {"slower": 1}


@pytest.mark.parametrize("sdpa_us", [9.0, 11.0])
def test_a_report_spares_other_processes_the_contest(device: Device, sdpa_us: float) -> None:
    device.sdpa_us = sdpa_us
    decide(device)
    wait_for(1, device)
    (told,) = device.reports
    assert (str(told.problem), told.contender, told.median_us) == (PROBLEM, contest.rival(), pytest.approx(sdpa_us))
    device.baselines = (baseline(told.contender, told.median_us, told.note),)
    attune.refresh()  # as another process has it
    touched, device.stats = dict(device.recorded), Stats()
    device.call(5)
    assert device.computed == ((5, {}) if sdpa_us > 10 else (0, {"slower": 5}))
    assert device.recorded == touched


def test_it_is_reported_once_and_by_the_thread(device: Device) -> None:
    device.reporting_fails_with = attune.Unreachable("gone")
    decide(device)
    device.call(10)
    wait_for(1, device)
    do_other_things()
    assert (list(process._kernel_cache._reports), len(device.reports)) == ([], 1)
    assert threading.get_ident() not in device.reporters


def test_the_hosts_verdict_is_not_reported(device: Device) -> None:
    device.sdpa_us = 20.0
    device.call(CALLS + 1)
    assert state().kernels == 1
    do_other_things()
    assert (list(process._kernel_cache._reports), device.reports) == ([], [])


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("calls_before", [0, 7])
def test_deterministic_calls_are_not_timed(device: Device, calls_before: int) -> None:
    device.kernel_us = 100.0
    device.call(calls_before)
    touched, device.stats = dict(device.recorded), Stats()
    with deterministic():
        device.call(CALLS)
    device.call(CALLS)
    assert (device.computed, device.recorded) == ((2 * CALLS, {}), touched)


def test_deterministic_calls_stay_with_sdpa_where_the_kernel_is_slower(device: Device) -> None:
    decide(device)
    device.stats = Stats()
    with deterministic():
        device.call(5)
    assert device.computed == (0, {"slower": 5})


@pytest.mark.parametrize("sdpa_us", [5.0, 20.0])
def test_a_kernel_that_replaces_another_is_timed(
    device: Device, service: Service, clock: Clock, sdpa_us: float
) -> None:
    device.sdpa_us = sdpa_us
    decide(device)
    service.artifact, service.served = "second", 2
    device.kernel_us = 10.0 if sdpa_us < 10 else 40.0
    check_again(clock)
    assert entry().contest is not None
    device.sdpa_us = 12.5 if sdpa_us < 10 else sdpa_us
    decide(device)
    assert (entry().contest, entry().launch is not None) == (None, sdpa_us < 10)


def test_a_kernel_that_stays_is_not_timed_again(device: Device, service: Service, clock: Clock) -> None:
    decide(device)
    service.served = 2
    checks = state().checks
    check_again(clock)
    assert state().checks > checks
    assert (state().contests, state().without_kernel) == (0, {"slower": 1})
    assert entry().due == math.inf, "its calls are SDPA's without a further look"


@pytest.mark.parametrize("decided", [False, True])
def test_what_is_known_of_a_kernel_is_known_while_the_next_is_being_compiled(
    device: Device, service: Service, clock: Clock, decided: bool
) -> None:
    device.call()
    if decided:
        decide(device)
    before = state()
    service.artifact, service.served, device.compiling = "second", 2, PROBLEM
    check_again(clock)
    assert (state().contests, state().without_kernel) == (before.contests, before.without_kernel)
    assert entry().unsuitable.reason is (Reason.SLOWER if decided else Reason.PENDING)
    assert entry().due == (math.inf if decided else -math.inf)


def check_again(clock: Clock) -> None:
    """Has the thread look for changes and check the kernel there is."""
    checks = state().checks
    clock.now += 30.0
    for _ in range(60_000):
        process.wake()
        if state().checks > checks:
            break
        threading.Event().wait(0.001)
    do_other_things()


def do_other_things() -> None:
    """The thread does, after what it is doing."""
    assert attune.warm(["b1.h2.q17.d64.f16.lse"], device=-1, timeout=60)


def test_other_backends_are_timed_once_changes_are_looked_for(
    device: Device, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.sdpa_us = 20.0
    decide(device)
    kernels = process._kernel_cache
    kernels._meet_rival()
    assert state().kernels == 1
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        kernels._meet_rival()
        assert (state().kernels, state().contests) == (0, 1)
        device.sdpa_us = 5.0
        decide(device)
    assert state().without_kernel == {"slower": 1}
    wait_for(2, device)
    assert device.reports[-1].contender == f"torch-sdpa {torch.__version__} (math)"


def test_the_rivals_name_says_which_backends_are_enabled() -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    assert contest.rival() == f"torch-sdpa {torch.__version__}"
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
        assert contest.rival() == f"torch-sdpa {torch.__version__} (flash, efficient)"
    assert contest.rival() == f"torch-sdpa {torch.__version__}"


def test_that_torch_puts_cudnn_first_by_itself_changes_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    order = contest._priorities()
    monkeypatch.setattr(contest, "_priorities", lambda: ("cudnn", *(name for name in order if name != "cudnn")))
    assert contest.rival() == f"torch-sdpa {torch.__version__}"


def test_a_graph_that_is_captured_undecided_has_sdpa_and_says_so(device: Device) -> None:
    device.call()
    device.captures[STREAM] = Capture(1, "graph")
    device.stats = Stats()
    with pytest.warns(AttuneWarning, match=r"undecided.*call attune.warm before"):
        device.call()
    assert device.computed == (0, {"undecided": 1})


def test_a_graph_that_is_captured_undecided_has_what_is_recorded(device: Device) -> None:
    device.baselines = (baseline("sdpa", 20.0),)
    device.call()
    device.captures[STREAM] = Capture(1, "graph")
    device.stats = Stats()
    device.call()
    assert device.computed == (1, {})


@pytest.mark.parametrize("behind", [False, True])
def test_a_graph_has_a_kernel_only_by_the_devices_verdict(device: Device, service: Service, behind: bool) -> None:
    device.sdpa_us = 20.0
    if behind:
        decide(device)
    else:
        device.call(CALLS + 1)
    device.stats = Stats()
    device.captures[STREAM] = Capture(1, "graph")
    device.call()
    device.captures.clear()
    device.call()
    assert device.computed == ((2, {}) if behind else (1, {"undecided": 1}))


def test_tensors_with_strides_of_their_own_are_in_no_graph_either(device: Device) -> None:
    wide = half(1, 2, 16, 128)[..., :64]
    stats = Stats()

    def call() -> None:
        attend(stats, wide, wide, wide, None, 0.0, False, None, False)

    device.sdpa_us = 20.0
    for _ in range(CALLS + 1):
        call()
    assert entry().launch is not None
    stats.launched, stats.fallbacks = 0, Counter()
    call()
    device.captures[STREAM] = Capture(1, "graph")
    call()
    assert (stats.launched, stats.fallbacks) == (1, {"undecided": 1})


def test_a_call_that_is_in_no_graph_leaves_no_tensors_behind(device: Device) -> None:
    device.sdpa_us = 20.0
    wide = half(1, 2, 16, 128)[..., :64]
    alive = weakref.ref(wide)
    for call in range(CALLS + 3):
        if call > CALLS:
            device.captures[STREAM] = Capture(1, "graph")
        attend(device.stats, wide, wide, wide, None, 0.0, False, None, False)
    assert device.stats.fallbacks["undecided"] == 2
    del wide
    assert alive() is None
    assert capture.UNDECIDED.__traceback__ is None


def decode(device: Device, lengths: range, dim: int = 64) -> None:
    for length in lengths:
        keys = half(1, 2, length, dim)[..., :64]
        attend(device.stats, half(1, 2, 1, dim)[..., :64], keys, keys, None, 0.0, False, None, False)


@pytest.mark.parametrize("sdpa_us", [9.0, 11.0])
def test_the_lengths_of_a_range_have_one_contest(device: Device, service: Service, sdpa_us: float) -> None:
    device.domains, device.sdpa_us = (Domain(Axis.KV, 32, 4096),), sdpa_us
    device.behind = True
    decode(device, range(32, 32 + CALLS))
    device.behind = False
    device.catch_up()
    decode(device, range(100, 101))
    touched, device.stats = dict(device.recorded), Stats()
    decode(device, range(90, 120))
    assert device.computed == ((30, {}) if sdpa_us > 10 else (0, {"slower": 30}))
    assert device.recorded == touched
    assert len(service.problems) == 1


def test_a_range_that_won_by_the_hosts_time_is_in_no_graph(device: Device) -> None:
    device.domains, device.sdpa_us = (Domain(Axis.KV, 32, 4096),), 20.0
    decode(device, range(32, 32 + CALLS + 1))
    device.stats = Stats()
    for dim in (64, 128):  # with strides of their own, too
        decode(device, range(200, 202), dim)
        device.captures[STREAM] = Capture(1, "graph")
        decode(device, range(200, 202), dim)
        device.captures.clear()
    assert device.computed == (4, {"undecided": 4})


def test_a_kernel_that_the_driver_refuses_is_out_of_the_contest(device: Device, service: Service) -> None:
    service.launching_fails_with = CudaError("no memory", reason="CUDA_ERROR_OUT_OF_MEMORY")
    device.call(CALLS)
    assert device.computed == (0, {"not_launched": CALLS})
    assert (state().contests, state().without_kernel) == (0, {"not_launched": 1})


def test_other_functions_take_part(device: Device, service: Service) -> None:
    q = Q.transpose(1, 2).contiguous()
    with attune.replace_sdpa() as replaced:
        for _ in range(CALLS + 5):
            assert flash_attn_func(q, q, q).shape == q.shape
    assert replaced.stats.fallbacks["contest"] == CALLS // 2
    assert replaced.stats.launched == CALLS // 2
    assert replaced.stats.fallbacks["slower"] == 5


def test_threads(device: Device) -> None:
    device.sdpa_us = 50.0
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with torch.no_grad():
                for _ in range(100):
                    attend(None, Q, Q, Q, None, 0.0, False, None, False)
        except BaseException as failure:
            failures.append(failure)

    together = [threading.Thread(target=work) for _ in range(8)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert (failures, state().kernels, state().contests) == ([], 1, 0)


@pytest.mark.parametrize("before", [1, 3, CALLS - 2])
@pytest.mark.parametrize("sdpa_us", [9.0, 11.0])
def test_warming_decides_on_the_device(
    device: Device, monkeypatch: pytest.MonkeyPatch, sdpa_us: float, before: int
) -> None:
    class Stream:
        def synchronize(self) -> None:
            device.behind = False
            device.catch_up()

    monkeypatch.setattr(warming, "decide", DECIDE)
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: setattr(device, "behind", True))
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(warming, "tensors_of", lambda problem, index: (Q, Q, Q))
    device.sdpa_us = sdpa_us
    device.call(before)
    assert attune.warm()
    assert (state().contests, state().kernels) == (0, 1 if sdpa_us > 10 else 0)
    device.captures[STREAM] = Capture(1, "graph")
    device.stats = Stats()
    device.call()
    assert device.computed == ((1, {}) if sdpa_us > 10 else (0, {"slower": 1}))


def test_tensors_to_warm_with_pose_the_problem() -> None:
    for text in ("b2.h4.kvh2.q8.kv12.d64.f16", "b2.h4.q8.d64.bf16.causal.bshd"):
        problem = attune.Problem.parse(text)
        q, k, v = warming.tensors_of(problem, "cpu")
        from attune.torch.problem_of_tensors import problem_for

        assert problem_for(q, k, v, problem.mask == "causal") == problem
