"""Whether a kernel is faster here than what it replaces: the two are timed in turn, in the caller's own calls.

A call is timed by two events on its stream, which later calls look at: nothing waits for the device. In an idle stream
they measure the host as well, so that pairs of samples are of two kinds: bound to the device, if everything had been
enqueued before the device came to the first event, or to the host. The first kind with PAIRS pairs decides; only the
device's verdict holds for CUDA graphs, and for other processes.
"""

from __future__ import annotations

import statistics
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from attune.background.capture import UNDECIDED
from attune.background.reason import Reason, Unsuitable
from attune.background.records import MARGIN, Recorded, Verdict
from attune.cuda.driver import CudaError, Driver, driver
from attune.problem import Problem

PAIRS = 8
WARM_UP = 4  # calls: two of each
_MOST_LOST = 8  # samples, or changes of the rival, before SDPA keeps the calls
_LEAST_US = 0.001

_TURN_OF_SDPA = Unsuitable(Reason.CONTEST, "the kernel is being timed against SDPA")


def is_contested(problem: Problem) -> bool:
    """Whether plain SDPA computes it. Other problems' is unfused, or has a mask in memory, and is not faster."""
    options = problem.window or problem.softcap or problem.lse or problem.sinks or problem.has_own_lengths
    return not options and not problem.kv_dtype and problem.mask in ("none", "causal")


class _Sample(NamedTuple):
    number: int
    start: Any
    end: Any
    of_device: bool


_pools: dict[int, list[Any]] = {}  # events of each device that nobody uses; they are kept as long as the process


class Contest:
    """Of one kernel, against what computes the same calls without it. Thread-safe; no call waits for another.

    `decided` is called once, in the call that finds the verdict."""

    def __init__(
        self,
        device: int,
        rival: Callable[[], str],
        decided: Callable[[Contest, Verdict], None],
        known: Recorded | None = None,
    ) -> None:
        """`rival`: the name of what computes without a kernel, as torch is set up at the time. `known`: of it, as it
        is now."""
        self.known = known
        self.for_graphs = False  # while it is set, only the device's verdict will do
        self._device = device
        self._name = rival
        self._decided = decided
        self._lock = threading.Lock()
        self._rival = rival()  # that is being timed
        self._number = 0  # of the next call
        self._lost = 0
        self._pending: deque[_Sample] = deque()
        self._half: dict[int, tuple[float, bool]] = {}  # of each pair that is not complete, the sample there is
        self._broken: set[int] = set()  # pairs of which a sample was lost
        self._pairs: dict[bool, list[tuple[float, float]]] = {True: [], False: []}  # (kernel, rival), by of_device
        self._verdict: Verdict | None = None

    def turn(self, stream: int) -> Turn:
        """The part of a call on `stream` in this; to be entered around what computes it."""
        return Turn(self, stream)

    def begin(self, turn: Turn) -> None:
        """Decides who computes the call and whether it is timed. Holds the lock if so, until `end`."""
        if not self._lock.acquire(blocking=False):  # another thread's call is being timed
            return
        try:
            gpu = driver()
            with gpu.on(self._device):
                if gpu.is_capturing(turn.stream):
                    same = self._name() == self._rival
                    turn.ours = same and self.known is not None and self.known.faster
                    turn.unsuitable = UNDECIDED
                    return
                self._harvest(gpu)
                self._meet(self._name())
                self._judge()
                if self._verdict is not None:
                    turn.ours, turn.unsuitable = self._verdict.faster, self._verdict.unsuitable()
                elif self._may_time():
                    turn.number, self._number = self._number, self._number + 1
                    turn.ours = turn.number % 4 in (0, 3)  # A B B A
                    if turn.number >= WARM_UP:
                        turn.events = self._event(gpu), self._event(gpu)
                        gpu.record_event(turn.events[0], turn.stream)
        except CudaError:
            self._lose(turn)
        finally:
            if turn.number < 0:
                self._lock.release()
        if self._verdict is not None:
            self._tell(self._verdict)

    def end(self, turn: Turn, *, computed: bool) -> None:
        """After a call that `begin` gave a number."""
        try:
            if turn.events is None:
                return
            if not computed:
                self._lose(turn)
                return
            gpu = driver()
            start, end = turn.events
            with gpu.on(self._device):
                gpu.record_event(end, turn.stream)
                self._pending.append(_Sample(turn.number, start, end, not gpu.has_reached(start)))
        except CudaError:
            self._lose(turn)
        finally:
            self._lock.release()

    def _may_time(self) -> bool:
        """Whether another call is to be timed: as many as could decide, and none that only adds to them."""
        if self._number < WARM_UP or self._number % 2 == 1:
            return True
        found = max(len(self._pairs[of_device]) for of_device in self._kinds())
        under_way = len({sample.number // 2 for sample in self._pending} | set(self._half))
        return found + under_way < PAIRS

    def _harvest(self, gpu: Driver) -> None:
        while self._pending and gpu.has_reached(self._pending[0].end):
            sample = self._pending.popleft()
            microseconds = gpu.microseconds_between(sample.start, sample.end)
            self._give_back(sample.start, sample.end)
            self._take(sample.number, max(microseconds, _LEAST_US), sample.of_device)

    def _take(self, number: int, microseconds: float, of_device: bool) -> None:
        pair = number // 2
        if pair in self._broken:
            self._broken.remove(pair)
            return
        first = self._half.pop(pair, None)
        if first is None:
            self._half[pair] = microseconds, of_device
            return
        kernel_first = number % 4 == 1
        times = (first[0], microseconds) if kernel_first else (microseconds, first[0])
        self._pairs[of_device and first[1]].append(times)

    def _meet(self, rival: str) -> None:
        """Starts anew where torch is set up to compute by something else."""
        if rival == self._rival:
            return
        self._lost += 1
        self.known = None
        self._rival = rival
        self._number = 0
        for sample in self._pending:
            self._give_back(sample.start, sample.end)
        self._pending.clear()
        self._half.clear()
        self._broken.clear()
        for pairs in self._pairs.values():
            pairs.clear()

    def _judge(self) -> None:
        if self._verdict is not None:
            return
        for of_device in self._kinds():
            pairs = self._pairs[of_device]
            if len(pairs) >= PAIRS:
                ratios = [theirs / ours for ours, theirs in pairs]
                ratio = statistics.median(ratios)
                times = [statistics.median(each) for each in zip(*pairs, strict=True)]
                self._verdict = Verdict(
                    ratio >= MARGIN, of_device, self._rival, ratio, min(ratios), max(ratios), *times
                )
                return
        if self._lost >= _MOST_LOST:
            self._verdict = Verdict(False, False, self._rival)

    def _kinds(self) -> tuple[bool, ...]:
        """Of pairs that may decide."""
        return (True,) if self.for_graphs else (True, False)

    def _tell(self, verdict: Verdict) -> None:
        decided, self._decided = self._decided, lambda contest, verdict: None
        decided(self, verdict)

    def _lose(self, turn: Turn) -> None:
        """The sample of `turn`, and with it its pair."""
        self._lost += 1
        if turn.events is not None:
            self._give_back(*turn.events)
            turn.events = None
        pair = turn.number // 2
        if turn.number < WARM_UP or self._half.pop(pair, None) is not None:
            return
        self._broken ^= {pair}  # its other sample is pending, to come, or lost as well

    def _event(self, gpu: Driver) -> Any:
        try:
            return _pools.setdefault(self._device, []).pop()
        except IndexError:
            return gpu.new_event()

    def _give_back(self, *events: Any) -> None:
        _pools.setdefault(self._device, []).extend(events)


class Turn:
    """One call's part in a contest; inside `with`, what computes it. An exception ends it without a time."""

    __slots__ = ("_contest", "events", "number", "ours", "stream", "unsuitable")

    def __init__(self, contest: Contest, stream: int) -> None:
        self._contest = contest
        self.stream = stream
        self.ours = False  # the kernel computes
        self.unsuitable = _TURN_OF_SDPA  # why not
        self.number = -1  # of the calls that take turns; -1: not one of them
        self.events: tuple[Any, Any] | None = None

    def __enter__(self) -> Turn:
        self._contest.begin(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self.number >= 0:
            self._contest.end(self, computed=kind is None)
