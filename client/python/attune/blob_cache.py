"""The files of another program's cache, kept on the server: never an error, and never a long wait.

What that program compiles does not depend on a server. One that is away, refuses or is slow is a miss, said once in
the log "attune" and remembered for HOLD_S, so that a process waits for it once in that while, for DEADLINE_S at most.

$ATTUNE_BLOBS_FROM says whose files are taken, in this order: "self,token:ci"; without it one's own alone.
$ATTUNE_BLOBS_SHARED=1 lets others take what this process puts.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from attune.client import Client
from attune.errors import AttuneError, Unreachable
from attune.retry import RetryPolicy

T = TypeVar("T")

DEADLINE_S = 2.0
HOLD_S = 30.0

_log = logging.getLogger("attune")
# What is wrong with one file alone: the next may be all right.
_OF_ONE_FILE = ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "DATA_LOSS", "NOT_FOUND")


class Away:
    """Until when the server is taken to be away, whatever is asked for."""

    until = -1.0


class Held:
    """One kind of call to the server, made again only some time after it failed. Thread-safe."""

    def __init__(self, what: str, away: Away, now: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._away = away
        self._now = now
        self._lock = threading.Lock()
        self._until = -1.0
        self._said: set[str] = set()

    def call(self, make: Callable[[], T], otherwise: T) -> T:
        """What `make` returns, or `otherwise` where it raises or has done so lately."""
        if self._now() < max(self._until, self._away.until):
            return otherwise
        try:
            return make()
        except Exception as error:  # whatever it is, what asks goes on without
            self._failed(error)
            return otherwise

    def _failed(self, error: Exception) -> None:
        code = error.code if isinstance(error, AttuneError) else type(error).__name__
        hold = code not in _OF_ONE_FILE
        with self._lock:
            if hold:
                self._until = self._now() + HOLD_S
            if isinstance(error, Unreachable):
                self._away.until = self._until
            new = code not in self._said
            self._said.add(code)
        if new:
            after = f"; not tried again for {HOLD_S:.0f} s" if hold else ""
            _log.warning("attune's cache %s nothing%s: %s", self._what, after, error)


class _Process:
    """What a process has: one client, made when it is first needed, and what failed lately."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        away = Away()
        self.reads = Held("finds", away)
        self.writes = Held("keeps", away)
        self.client: Client | None = None

    def connected(self) -> Client:
        with self.lock:
            if self.client is None:
                self.client = Client(deadline=DEADLINE_S, retry=RetryPolicy(attempts=1))
            return self.client


_process = _Process()


def forget() -> None:
    """Has the environment read again and the server tried again. In the child of a fork the parent's connection is left
    alone, and locks that another of its threads may have held are not waited for."""
    global _process
    _process = _Process()


os.register_at_fork(after_in_child=forget)


def get(namespace: str, key: str, files: Sequence[str]) -> dict[str, bytes]:
    """The files of `key`, or none unless all are there."""
    here = _process
    whose = _principals()
    return here.reads.call(lambda: here.connected().get_blobs(namespace, key, files, principals=whose), {})


def put(namespace: str, key: str, file: str, data: bytes) -> None:
    """Keeps a file, if the server takes it."""
    here = _process
    shared = os.environ.get("ATTUNE_BLOBS_SHARED", "") == "1"
    here.writes.call(lambda: here.connected().put_blob(namespace, key, file, data, shared=shared), None)


def newest(namespace: str, file: str, limit: int) -> list[bytes]:
    """What at most `limit` keys have under the name `file`, those put last first."""
    here = _process

    def read() -> list[bytes]:
        found: list[bytes] = []
        end = time.monotonic() + DEADLINE_S
        for principal in _principals():
            for blob in here.connected().blobs(namespace=namespace, principal=principal, limit=limit):
                if len(found) == limit or time.monotonic() > end:
                    return found
                if blob.file == file:
                    got = here.connected().get_blobs(namespace, blob.key, [file], principals=[blob.principal])
                    found.extend(got.values())
        return found

    return here.reads.call(read, [])


def _principals() -> list[str]:
    names = [name.strip() for name in os.environ.get("ATTUNE_BLOBS_FROM", "").split(",")]
    return [name for name in names if name] or ["self"]
