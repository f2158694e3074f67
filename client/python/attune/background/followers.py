"""Problems that nobody is asked for, because the answer to another one holds for them, too: that one's entry is their
lead."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

from attune.background.entry import PENDING, Entry, Key
from attune.background.head_dims import padded
from attune.background.ranges import Ranges
from attune.cuda import Kernel
from attune.values import Domain

MOST = 2048

_log = logging.getLogger("attune")


class Followers:
    """Who leads and who follows. To look takes no lock; whoever changes it holds the cache's."""

    def __init__(self) -> None:
        self._ranges: Ranges[Entry] = Ranges()
        self._followers: dict[Key, Entry] = {}  # the oldest first

    def lead_of(self, entry: Entry) -> Entry | None:
        """Who speaks for `entry`'s problem."""
        if entry.key is None:
            return None
        lead = self._ranges.find(*entry.key)
        return None if lead is entry else lead

    def leads(self, entry: Entry) -> bool:
        """Whether `entry` speaks for others."""
        return self._ranges.has(entry)

    def add(self, entry: Entry, lead: Entry, kernel: Kernel | None) -> None:
        """`entry` has what is known of `lead`; `kernel` is the lead's, made for it."""
        assert entry.key is not None
        self.leave(entry)
        self.dismiss(entry)
        entry.follow(lead, kernel)
        entry.lead = lead
        lead.followers[entry.key] = self._followers[entry.key] = entry

    def speak(self, lead: Entry, domains: Sequence[Domain]) -> None:
        """`lead` was answered, and what was said holds for `domains`."""
        assert lead.key is not None
        self.leave(lead)
        self.dismiss(lead)
        if not lead.dropped:
            self._ranges.put(lead, *lead.key, domains)

    def leave(self, entry: Entry) -> None:
        """`entry` has no lead any more."""
        if entry.lead is not None and entry.key is not None:
            entry.lead.followers.pop(entry.key, None)
            self._followers.pop(entry.key, None)
            entry.lead = None

    def dismiss(self, lead: Entry) -> None:
        """`lead` speaks for nobody else."""
        self._ranges.drop(lead)
        self.release(lead)

    def release(self, lead: Entry) -> None:
        """The next call of each follower looks anew for whom to follow."""
        for follower in list(lead.followers.values()):
            self.leave(follower)
            if not follower.pinned:
                follower.forget(PENDING, -math.inf)

    def remove(self, entry: Entry) -> list[Entry]:
        """`entry` takes no part any more. Returns those that follow it."""
        self.leave(entry)
        self._ranges.drop(entry)
        return list(entry.followers.values())

    def too_many(self) -> list[Entry]:
        """The oldest quarter, where there are more than MOST."""
        return list(self._followers.values())[: MOST // 4] if len(self._followers) > MOST else []


def made_for(entry: Entry, known: Kernel) -> Kernel | None:
    """`known` as it is for the problem of `entry`; None where its answer does not hold for that."""
    assert entry.key is not None
    problem, _ = entry.key
    try:
        answer = known.answer.at(padded(problem))
        return None if answer is None else known.like(answer)
    except Exception as error:  # an answer that does not fit its own recipe: the problem is asked for itself
        _log.warning("the answer to %s does not make one to %s: %s", known.answer.problem, problem, error)
        return None
