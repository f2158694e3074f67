"""Problems to kernels. A call looks here and never waits for the service; the background thread asks, loads and looks
for what has changed.

Calls keep the Entry of their shapes and read it without a lock, so that what the thread finds out is in force with the
next call. Whoever changes an Entry holds `_changed`, a call of a new length that an answer holds for among them, but
never while the service is asked, code is loaded or a launch is worked out.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator

from attune.background.compiling import Compiling
from attune.background.contests import Contests
from attune.background.entry import FIRST_BY_TORCH, Entry, Key, State
from attune.background.followers import Followers, made_for
from attune.background.head_dims import check_scale, is_padded
from attune.background.reason import Reason, Unsuitable
from attune.background.records import Report
from attune.background.service import Gpu, Service, check_code, unanswered, waits, waits_for_answers
from attune.background.settings import Settings
from attune.cuda import Kernel, load
from attune.errors import AttuneError, Unreachable
from attune.problem import Problem

_log = logging.getLogger("attune")

_MOST_KERNELS = 16384
_MOST_QUESTIONS = 4096  # at once; calls of further shapes are computed by SDPA and ask later
_COMPILING_S = 1.0  # before code that the service compiles is asked for again; then twice as long, up to `hold`
_CHECK_ALL_S = 900.0  # every kernel is asked for again this often, even where nothing seems to have changed


class KernelCache:
    """The kernels of one service, under one configuration. Thread-safe; `work` is for one thread."""

    def __init__(
        self,
        settings: Settings,
        gpu_of: Callable[[int], Gpu],
        wake: Callable[[], bool],
        rival: Callable[[], str] | None = None,
    ) -> None:
        """`wake` is called where there is work, and says whether anybody will do it. `rival`: the name of what computes
        a call without a kernel, at the time; None: nothing that kernels are timed against."""
        self._settings = settings
        self._reports: deque[Report] = deque()
        self._wake = wake
        self._service = Service(settings, gpu_of)
        self._entries: dict[Key, Entry] = {}
        self._followers = Followers()
        self._adding = threading.Lock()  # of calls alone
        self._questions: deque[Entry] = deque()
        self._asked: dict[int, object] = {}  # by the entry's id: what is in `_questions` or being asked
        self._closed = False
        self._compiling = Compiling(self._service.when_compiled, wake)
        self._checks: Iterator[Entry] = iter(())
        self._check_again = False  # from the start, once `_checks` is through
        self._checks_next = False  # questions and checks take turns
        self._served: object = None
        self._look_at = math.inf  # when to look for changes, and when to check every kernel
        self._check_all_at = math.inf
        self._changed = threading.Condition()
        against = rival if settings.never_slower else None
        self._contests = Contests(settings.policy, against, self._changed, self._followers, self._tell)
        self._counts = Counter[str]()

    def find(self, problem: Problem, device: int) -> Entry:
        """What is known of `problem` on this process's GPU `device`, as `look` has it."""
        return self.look(self._entry(problem, device))

    def look(self, entry: Entry) -> Entry:
        """`entry`; asks for it where that is due, and waits for the answer only as long as settings.wait, and not anew
        for code that the service is known to compile."""
        self._ask_if_due(entry)
        if entry.asked and self._wake() and entry.compiling is None and self._settings.wait > 0:
            with self._changed:
                self._changed.wait_for(lambda: not entry.asked, self._settings.wait)
        return entry

    def ask(self, problem: Problem, device: int) -> None:
        """`find` that waits for nothing, and leaves it to others to wake the thread."""
        self._ask_if_due(self._entry(problem, device))

    def pin(self, entry: Entry) -> None:
        """Has what computes the problem now compute it as long as `entry` is known."""
        with self._changed:
            entry.pinned = True
            if entry.kernel is None:
                entry.unsuitable, entry.due = FIRST_BY_TORCH, math.inf
            elif entry.contest is not None:  # which would change what computes from call to call
                entry.launch, entry.contest = entry.kernel.launch, None
            else:
                return
            self._followers.dismiss(entry)  # it is no longer found out what is true of them, too

    def refused(self, entry: Entry, error: Exception) -> Unsuitable:
        """The driver refused to launch `entry`'s kernel: it is left alone for a while."""
        with self._changed:
            due = math.inf if entry.pinned else time.monotonic() + self._settings.hold
            entry.forget(Unsuitable(Reason.NOT_LAUNCHED, str(error)), due)
            self._followers.dismiss(entry)  # nobody looks after their kernels any more
        return entry.unsuitable

    def wait(self, timeout: float) -> bool:
        """Until nothing is asked any more; False when `timeout` seconds were too few."""
        if self._asked and not self._wake():
            return False
        with self._changed:
            return self._changed.wait_for(lambda: not self._asked, timeout)

    def state(self) -> State:
        entries = list(self._entries.values())
        others = [entry for entry in entries if entry.launch is None and entry.contest is None and not entry.asked]
        without = Counter(entry.unsuitable.reason.value for entry in others)
        with_kernel = sum(entry.launch is not None for entry in entries)
        return State(with_kernel, len(self._asked), len(self.contested()), without, **self._counts)

    def contested(self) -> list[Entry]:
        """Those whose kernel is being timed against what it replaces."""
        return [entry for entry in list(self._entries.values()) if entry.contest is not None]

    def close(self) -> None:
        """Ends a question that is being asked; nobody works for this cache afterwards."""
        self._closed = True
        self._service.close()
        with self._changed:
            for entry in list(self._entries.values()):
                entry.asked = False
            self._questions.clear()
            self._asked.clear()
            self._changed.notify_all()

    def work(self) -> float:
        """Asks one question, checks one kernel or looks for changes, in the background thread. Returns 0 where there
        may be more to do, else the seconds until there is."""
        now = time.monotonic()
        compiled = self._compiling.take(now)
        if compiled is not None:
            self._ask_again(compiled)
            return 0.0
        reachable = self._service.reachable()
        if reachable and now >= self._look_at:
            self._look_for_changes(now)
            return 0.0
        if reachable and (self._checks_next or not self._questions):
            self._checks_next = False
            if self._check_next():
                return 0.0
        self._checks_next = True
        try:
            entry = self._questions.popleft()
        except IndexError:
            if self._reports and reachable:
                self._record(self._reports.popleft())
                return 0.0
            next_at = min(max(self._look_at, self._service.unreachable_until), self._compiling.next_at())
            return max(0.001, next_at - now)
        self._answer(entry)
        return 0.0

    def _entry(self, problem: Problem, device: int) -> Entry:
        key = problem, device
        entry = self._entries.get(key)
        if entry is None:
            with self._adding:
                if len(self._entries) >= _MOST_KERNELS:
                    self._make_room()
                entry = self._entries.setdefault(key, Entry(key))
        return entry

    def _follow(self, entry: Entry) -> bool:
        """Whether the answer to another problem holds for this one, too, and is now what is known of it."""
        while (lead := self._followers.lead_of(entry)) is not None:
            known = lead.kernel
            kernel = None if known is None else made_for(entry, known)
            if kernel is None and known is not None:
                return False
            with self._changed:
                if entry.pinned or entry.dropped:
                    return False
                if lead.kernel is not known or not self._followers.leads(lead):
                    continue  # something else was found out meanwhile
                if known is None and lead.compiling is None and time.monotonic() >= lead.due:
                    return False
                self._followers.add(entry, lead, kernel)
                self._counts["followed"] += 1
                for oldest in self._followers.too_many():
                    self._drop(oldest)
            return True
        return False

    def _drop(self, entry: Entry) -> None:
        """Makes room. `entry` is no longer checked, and so may no longer be launched, nor may those that follow it."""
        if entry.asked or entry.key is None:
            return
        entry.dropped = True
        entry.forget(entry.unsuitable, -math.inf)
        self._entries.pop(entry.key, None)
        for follower in self._followers.remove(entry):
            self._drop(follower)

    def _ask_if_due(self, entry: Entry) -> None:
        if self._closed or entry.kernel is not None or entry.asked or time.monotonic() < entry.due:
            return
        if self._follow(entry) or len(self._questions) >= _MOST_QUESTIONS:
            return
        token = object()
        if self._asked.setdefault(id(entry), token) is token:  # one of several threads gets through
            entry.asked = True
            self._questions.append(entry)

    def _make_room(self) -> None:
        """Drops the oldest quarter."""
        with self._changed:
            for entry in list(self._entries.values())[: _MOST_KERNELS // 4]:
                self._drop(entry)

    def _answer(self, entry: Entry) -> None:
        if self._follow(entry):
            with self._changed:
                self._settled(entry)
            return
        self._counts["questions"] += 1
        try:
            self._settle(entry, self._load(entry, kept=True))
        except Unsuitable as unsuitable:
            if unsuitable.reason is Reason.PENDING:
                self._ask_later(entry, unsuitable)
            else:
                self._settle_without(entry, unsuitable)

    def _ask_later(self, entry: Entry, compiling: Unsuitable) -> None:
        """A kernel that `entry` has stays in use; a question goes on being asked."""
        entry.compiling = entry.compiling or waits(_COMPILING_S, max(_COMPILING_S, self._settings.hold))
        due = time.monotonic() + entry.compiling.next()
        with self._changed:
            if entry.pinned:
                self._followers.dismiss(entry)
            if entry.pinned or self._closed:
                self._settled(entry)
                return
            if entry.kernel is None:
                entry.unsuitable, entry.due = compiling.again(), due
                self._followers.speak(entry, compiling.domains)
        self._compiling.add(entry, due)

    def _ask_again(self, entry: Entry) -> None:
        if entry.compiling is None:
            return
        if entry.asked:
            self._answer(entry)
        elif entry.kernel is not None and not (entry.pinned or entry.dropped):
            self._check(entry, entry.kernel)
        else:  # the driver refused the kernel meanwhile, or nobody looks after it any more
            entry.compiling = None

    def _check_next(self) -> bool:
        """Checks one kernel; whether there was one left."""
        while True:
            for entry in self._checks:
                is_own = entry.lead is None and (not entry.pinned or self._followers.leads(entry))
                if entry.kernel is not None and is_own and not (entry.dropped or entry.compiling):
                    self._check(entry, entry.kernel)
                    return True
            if not self._check_again:
                return False
            self._check_again = False
            self._checks = iter(list(self._entries.values()))

    def _check(self, entry: Entry, known: Kernel) -> None:
        self._counts["checks"] += 1
        try:
            kernel = self._load(entry, kept=False, known=known)
        except Unsuitable as unsuitable:
            if unsuitable.reason is Reason.UNREACHABLE:  # the kernel stays in use until somebody answers
                self._served = None
                self._look_at = self._service.unreachable_until
                entry.compiling = None
                return
            if unsuitable.reason is Reason.PENDING:
                self._ask_later(entry, unsuitable)
                return
            self._counts["replaced"] += 1
            self._settle_without(entry, unsuitable)
            return
        entry.compiling = None
        if kernel is not known:
            self._counts["replaced"] += 1
            self._settle(entry, kernel)

    def _look_for_changes(self, now: float) -> None:
        """Compares what the service serves with the last time; asks for every kernel again where that differs."""
        self._look_at = now + self._settings.revalidate
        self._meet_rival()
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
        for entry in list(self._entries.values()):
            if entry.kernel is None and not entry.pinned:
                entry.due = -math.inf  # calls without a kernel ask again
        self._check_again = True

    def _load(self, entry: Entry, *, kept: bool, known: Kernel | None = None) -> Kernel:
        """The kernel; `known` where the service's answer is still that one. Raises Unsuitable."""
        assert entry.key is not None
        problem, device = entry.key
        try:
            answer = self._service.answer(problem, device, kept=kept)
        except Unsuitable:
            raise
        except Exception as error:
            unsuitable = unanswered(problem, error)
            if known is not None and unsuitable.reason is Reason.NOT_LOADED:
                return known  # the service could not say that it is another one
            raise unsuitable from error
        if known is not None and _same(answer, known.answer):
            return known
        check_code(problem, answer)
        try:
            kernel = load(answer, device)
        except Exception as error:
            raise Unsuitable(Reason.NOT_LOADED, f"the kernel for {problem}: {error}", answer.domains) from error
        if is_padded(problem):
            check_scale(problem, kernel)
        return kernel

    def _settle(self, entry: Entry, kernel: Kernel) -> None:
        with self._changed:
            entry.waits = None
            if entry.pinned:
                self._followers.dismiss(entry)
            else:
                self._contests.take_up(entry, kernel)
                self._followers.speak(entry, kernel.answer.domains)
            self._settled(entry)

    def _tell(self, told: Report) -> None:
        if not self._closed:
            self._reports.append(told)
            self._wake()

    def _record(self, told: Report) -> None:
        try:
            self._service.record(told)
        except AttuneError as error:  # it may have been recorded all the same, and is found out anew if not
            _log.debug("the service did not record the time of %s for %s: %s", told.contender, told.problem, error)

    def _meet_rival(self) -> None:
        """Times kernels anew where torch is set up to compute by something else than the last time."""
        if not self._contests.rival_changed():
            return
        with self._changed:
            for entry in list(self._entries.values()):
                if entry.kernel is not None and entry.lead is None and not entry.pinned:
                    self._contests.take_up(entry, entry.kernel)
                    self._followers.release(entry)

    def _settle_without(self, entry: Entry, unsuitable: Unsuitable) -> None:
        if unsuitable.reason is Reason.UNREACHABLE:
            due = self._service.unreachable_until
        else:
            entry.waits = entry.waits or waits_for_answers(self._settings.hold)
            due = time.monotonic() + entry.waits.next()
        with self._changed:
            if entry.pinned:
                self._followers.dismiss(entry)
            else:
                entry.forget(unsuitable.again(), due)
                self._followers.speak(entry, unsuitable.domains)
            self._settled(entry)

    def _settled(self, entry: Entry) -> None:
        entry.asked = False
        entry.compiling = None
        self._asked.pop(id(entry), None)
        if self._look_at == math.inf:
            self._look_at = time.monotonic() + self._settings.revalidate
        self._changed.notify_all()


def _same(answer: object, known: object) -> bool:
    """Whether both are the same code, launched in the same way, for the same problems."""
    names = ("artifact_sha256", "recipe", "domains")
    return all(getattr(answer, name) == getattr(known, name) for name in names)
