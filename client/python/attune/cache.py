"""Answers kept in the process, so that asking again costs a look-up in a dict and no call."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import NamedTuple

from attune.problem import Problem
from attune.values import Answer, Objective, Policy


class AnswerKey(NamedTuple):
    """What an answer is kept under."""

    problem: Problem
    device_id: str
    policy: Policy
    objective: Objective = Objective.UNSPECIFIED  # never TIME, which is the same


def unless_time(objective: Objective) -> Objective:
    return Objective.UNSPECIFIED if objective is Objective.TIME else objective


@dataclass(frozen=True, slots=True)
class Entry:
    answer: Answer
    with_artifact: bool  # was asked for with its artifact
    fetched: float  # seconds since 1970-01-01 UTC
    expires: float  # of the client's clock


class AnswerCache:
    """Thread-safe. Bounded: when full, the answer that has been there longest makes room."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: dict[AnswerKey, Entry] = {}
        self._writing = threading.Lock()

    def find(self, key: AnswerKey, need_artifact: bool, now: float) -> Answer | None:
        """An answer that has not expired at `now` and, if need be, was fetched with its artifact."""
        entry = self._entries.get(key)
        if entry is None or now >= entry.expires or (need_artifact and not entry.with_artifact):
            return None
        return entry.answer

    def find_even_expired(self, key: AnswerKey) -> Entry | None:
        return self._entries.get(key)

    def put(self, key: AnswerKey, entry: Entry) -> None:
        if self._capacity <= 0:
            return
        with self._writing:
            self._entries.pop(key, None)
            if len(self._entries) >= self._capacity:
                del self._entries[next(iter(self._entries))]
            self._entries[key] = entry

    def renew_lock(self) -> None:
        """In the child of a fork."""
        self._writing = threading.Lock()

    def clear(self) -> None:
        with self._writing:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
