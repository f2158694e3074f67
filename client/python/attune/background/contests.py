"""Which kernels are timed against what they replace before calls launch them, and what comes of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager

from attune.background.contest import Contest, is_contested
from attune.background.entry import Entry
from attune.background.followers import Followers
from attune.background.head_dims import is_padded
from attune.background.records import Report, Verdict, recorded, report
from attune.cuda import Kernel
from attune.values import Policy


class Contests:
    """Of the entries of one cache, whose lock is `changed`."""

    def __init__(
        self,
        policy: Policy,
        rival: Callable[[], str] | None,
        changed: AbstractContextManager,
        followers: Followers,
        tell: Callable[[Report], None],
    ) -> None:
        """`rival`: the name of what computes a call without a kernel, at the time; None: nothing that kernels are timed
        against. `tell` is called with what other processes may go by, in the call that found it."""
        self._policy = policy
        self._rival = rival
        self._last_rival = ""  # when it was last asked for
        self._changed = changed
        self._followers = followers
        self._tell = tell

    def rival_changed(self) -> bool:
        """Whether torch is set up to compute by something else than the last time."""
        if self._rival is None:
            return False
        before, self._last_rival = self._last_rival, self._rival()
        return before not in ("", self._last_rival)

    def take_up(self, entry: Entry, kernel: Kernel) -> None:
        """Has calls launch `kernel`, if it is known to be faster than what it replaces, or nothing is to be known of
        that. The lock is held, and calls read `entry` meanwhile."""
        entry.launch = None  # what calls have read of the kernel before does not go together with this one
        entry.kernel, entry.device, entry.for_graphs = kernel, kernel.device, True
        pads, problem = _pads(entry), kernel.answer.problem
        # What computes packed sequences without a kernel waits for the device for each, and is in no graph.
        contested = is_contested(problem) or (pads and not problem.has_own_lengths)
        rival = None if self._rival is None or not contested else self._rival()
        known = None if rival is None or pads else recorded(kernel.answer, self._policy, rival)
        if entry.dropped:
            entry.launch = entry.contest = None
        elif rival is None or (known is not None and known.faster and known.in_place):
            entry.launch, entry.contest = kernel.launch, None
        elif known is not None and not known.faster:
            entry.unsuitable, entry.due = known.unsuitable(), math.inf
            entry.launch = entry.contest = None
        else:
            assert self._rival is not None
            entry.due = -math.inf  # calls look at the contest
            entry.contest = Contest(
                kernel.device, self._rival, lambda *found: self._decide(entry, kernel, *found), known
            )
            entry.launch = None

    def _decide(self, entry: Entry, kernel: Kernel, contest: Contest, verdict: Verdict) -> None:
        """In the call that found it."""
        with self._changed:
            if entry.contest is not contest:  # the kernel was replaced, dropped or refused meanwhile
                return
            if verdict.faster:
                entry.for_graphs = verdict.of_device or (contest.known is not None and contest.known.faster)
                entry.launch = entry.launch_of(kernel)
            else:
                entry.unsuitable, entry.due = verdict.unsuitable(), math.inf
            entry.contest = None
            # Times of other lengths, too, are nobody's own; those with padding are not the answer's problem's.
            shared = bool(entry.followers) or _pads(entry)
            self._followers.release(entry)
        told = None if shared else report(kernel.answer, verdict)
        if told is not None:
            self._tell(told)


def _pads(entry: Entry) -> bool:
    """Whether its calls copy their tensors, which nothing that is recorded knows of."""
    return entry.key is not None and is_padded(entry.key[0])
