"""Problems to kernels. A call looks here and never waits for the service; the background thread asks, loads and looks
for what has changed."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from attune.cuda import CudaError, Kernel, load
from attune.errors import NotFound, Unreachable
from attune.problem import Problem
from attune.retry import Backoff
from attune.torch.fallback import Reason, Unsuitable
from attune.torch.service import Service, waits_for_answers
from attune.torch.settings import Settings

_MOST_KERNELS = 16384
_MOST_QUESTIONS = 4096  # at once; calls of further shapes are computed by SDPA and ask later
_CHECK_ALL_S = 900.0  # every kernel is asked for again this often, even where nothing seems to have changed

Key = tuple[Problem, int]


class Entry:
    """What is known of a problem on a device: a kernel, or why there is none."""

    __slots__ = ("asked", "due", "kernel", "unsuitable", "waits")

    def __init__(self) -> None:
        self.kernel: Kernel | None = None
        self.unsuitable = Unsuitable(Reason.PENDING, "the service has been asked and has not answered yet")
        self.asked = False  # the background thread has the question, or is to get it
        self.due = -math.inf  # when to ask again for what there was no kernel for
        self.waits: Backoff | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What attention knows, and what it took to learn it."""

    kernels: int = 0  # problems with a kernel
    pending: int = 0  # problems that were asked for and not answered yet
    without_kernel: Counter[str] = field(default_factory=Counter)  # other problems, by the reason's value
    questions: int = 0  # problems that the service was asked for
    checks: int = 0  # of them, again, to see whether the answer is still the same
    replaced: int = 0  # kernels that were replaced, or dropped, because it was not


class KernelCache:
    """The kernels of one service, under one configuration. Thread-safe; `work` is for one thread."""

    def __init__(self, settings: Settings, wake: Callable[[], bool], forget: Callable[[], None]) -> None:
        """`wake` is called where there is work, and says whether anybody will do it; `forget` after a kernel that
        was handed out should be run no longer."""
        self.generation = 0  # changes with whatever was handed out
        self._settings = settings
        self._wake = wake
        self._forget = forget
        self._service = Service(settings)
        self._entries: dict[Key, Entry] = {}
        self._questions: deque[tuple[Key, Entry]] = deque()
        self._checks: deque[tuple[Key, Entry]] = deque()
        self._checks_next = False  # questions and checks take turns
        self._served: object = None
        self._look_at = math.inf  # when to look for changes, and when to check every kernel
        self._check_all_at = math.inf
        self._changed = threading.Condition()  # reentrant
        self._counts = Counter[str]()

    def find(self, problem: Problem, device: int) -> Entry:
        """What is known of `problem` on this process's GPU `device`; asks for it where that is due, and waits for the
        answer only as long as settings.wait."""
        entry = self.ask(problem, device)
        if entry.asked and self._wake() and self._settings.wait > 0:
            with self._changed:
                self._changed.wait_for(lambda: not entry.asked, self._settings.wait)
        return entry

    def ask(self, problem: Problem, device: int) -> Entry:
        """`find` that does not wait, and leaves it to others to wake the thread."""
        key = problem, device
        entry = self._entries.get(key)
        if entry is None or (entry.kernel is None and not entry.asked and time.monotonic() >= entry.due):
            entry = self._ask_for(key)
        return entry

    def wait(self, timeout: float) -> bool:
        """Until nothing is asked any more; False when `timeout` seconds were too few."""
        with self._changed:
            if self._pending() and not self._wake():
                return False
            return self._changed.wait_for(lambda: not self._pending(), timeout)

    def state(self) -> State:
        with self._changed:
            entries = list(self._entries.values())
            counts = dict(self._counts)
        without = Counter(e.unsuitable.reason.value for e in entries if e.kernel is None and not e.asked)
        with_kernel = sum(entry.kernel is not None for entry in entries)
        return State(with_kernel, sum(entry.asked for entry in entries), without, **counts)

    def close(self) -> None:
        """Ends a question that is being asked; nobody works for this cache afterwards."""
        self._service.close()
        with self._changed:
            for entry in self._entries.values():
                entry.asked = False
            self._questions.clear()
            self._changed.notify_all()

    def work(self) -> float:
        """Asks one question, checks one kernel or looks for changes, in the background thread. Returns 0 where there
        may be more to do, else the seconds until there is."""
        now = time.monotonic()
        reachable = self._service.reachable()
        if reachable and now >= self._look_at:
            self._look_for_changes(now)
            return 0.0
        if reachable and self._checks and (self._checks_next or not self._questions):
            self._checks_next = False
            self._check(*self._checks.popleft())
            return 0.0
        self._checks_next = True
        try:
            question = self._questions.popleft()
        except IndexError:
            return max(0.001, max(self._look_at, self._service.unreachable_until) - now)
        self._answer(*question)
        return 0.0

    def _ask_for(self, key: Key) -> Entry:
        with self._changed:
            entry = self._entries.get(key)
            if len(self._questions) >= _MOST_QUESTIONS:
                return entry or Entry()
            if entry is None:
                self._make_room()
                entry = self._entries[key] = Entry()
            if not entry.asked and entry.kernel is None:
                entry.asked = True
                self._questions.append((key, entry))
        return entry

    def _make_room(self) -> None:
        """Drops the oldest quarter: what is dropped is no longer checked, and so must not stay in use elsewhere."""
        if len(self._entries) < _MOST_KERNELS:
            return
        for key in [key for key, _ in zip(self._entries, range(_MOST_KERNELS // 4), strict=False)]:
            if not self._entries[key].asked:
                del self._entries[key]
        self._outdate()

    def _pending(self) -> bool:
        return any(entry.asked for entry in list(self._entries.values()))

    def _answer(self, key: Key, entry: Entry) -> None:
        self._counts["questions"] += 1
        try:
            self._settle(entry, self._load(key, kept=True))
        except Unsuitable as unsuitable:
            self._settle_without(entry, unsuitable)

    def _check(self, key: Key, entry: Entry) -> None:
        if self._entries.get(key) is not entry or entry.kernel is None:
            return
        self._counts["checks"] += 1
        try:
            kernel = self._load(key, kept=False, known=entry.kernel)
        except Unsuitable as unsuitable:
            if unsuitable.reason is Reason.UNREACHABLE:  # the kernel stays in use until somebody answers
                self._served = None
                self._look_at = self._service.unreachable_until
                return
            kernel = None
            why = unsuitable
        if kernel is entry.kernel:
            return
        self._counts["replaced"] += 1
        if kernel is None:
            self._settle_without(entry, why)
        else:
            self._settle(entry, kernel)
        self._outdate()

    def _look_for_changes(self, now: float) -> None:
        """Compares what the service serves with the last time; asks for every kernel again where that differs."""
        self._look_at = now + self._settings.revalidate
        try:
            served = self._service.served()
        except Unreachable:
            self._served = None
            self._look_at = self._service.unreachable_until
            return
        except Exception:  # it cannot say
            served = None
        if served is not None and served == self._served and now < self._check_all_at:
            return
        self._served = served
        self._check_all_at = now + _CHECK_ALL_S
        with self._changed:
            waiting = {id(entry) for _, entry in self._checks}
            entries = [item for item in self._entries.items() if id(item[1]) not in waiting]
            self._checks.extend(item for item in entries if item[1].kernel is not None)
            for _, entry in entries:
                entry.due = -math.inf
        self._outdate()  # so that calls without a kernel ask again

    def _load(self, key: Key, *, kept: bool, known: Kernel | None = None) -> Kernel:
        """The kernel; `known` where the service's answer is still that one. Raises Unsuitable."""
        problem, device = key
        try:
            answer = self._service.answer(problem, device, kept=kept)
        except Unsuitable:
            raise
        except Unreachable as error:
            raise Unsuitable(Reason.UNREACHABLE, f"{error}; it is asked again from time to time") from error
        except NotFound as error:
            raise Unsuitable(Reason.NO_ANSWER, str(error)) from error
        except Exception as error:
            if known is not None:  # the service could not say that it is another one
                return known
            raise Unsuitable(Reason.NOT_LOADED, f"{problem}: {error}") from error
        if known is not None and _same(answer, known.answer):
            return known
        try:
            return load(answer, device)
        except CudaError as error:
            raise Unsuitable(Reason.NOT_LOADED, f"the kernel for {problem}: {error}") from error
        except Exception as error:
            raise Unsuitable(Reason.NOT_LOADED, f"{problem}: {error}") from error

    def _outdate(self) -> None:
        """Calls that look here from now on see what was changed before; those that did are forgotten."""
        with self._changed:
            self.generation += 1
        self._forget()

    def _settle(self, entry: Entry, kernel: Kernel) -> None:
        with self._changed:
            entry.kernel = kernel
            self._settled(entry)

    def _settle_without(self, entry: Entry, unsuitable: Unsuitable) -> None:
        if unsuitable.reason is Reason.UNREACHABLE:
            due = self._service.unreachable_until
        else:
            entry.waits = entry.waits or waits_for_answers(self._settings.hold)
            due = time.monotonic() + entry.waits.next()
        with self._changed:
            entry.kernel = None
            entry.unsuitable = unsuitable.again()
            entry.due = due
            self._settled(entry)

    def _settled(self, entry: Entry) -> None:
        entry.asked = False
        if self._look_at == math.inf:
            self._look_at = time.monotonic() + self._settings.revalidate
        self._changed.notify_all()


def _same(answer: object, known: object) -> bool:
    """Whether both are the same code, launched in the same way."""
    return answer.artifact_sha256 == known.artifact_sha256 and answer.recipe == known.recipe  # type: ignore[attr-defined]
