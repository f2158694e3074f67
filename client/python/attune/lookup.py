"""Client.best without its I/O: the cache first, then the server, then what is left when there is no server."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from google.protobuf.message import Message

from attune import api, arguments, snapshot
from attune.cache import AnswerCache, AnswerKey, Entry, unless_time
from attune.clock import Clock, utc_text
from attune.errors import AttuneError, Unreachable
from attune.plans.plan import Call, Plan
from attune.problem import Problem
from attune.values import Answer, ArtifactState, Objective, Policy, Provenance


@dataclass(frozen=True, slots=True)
class Query:
    """What `best` is asked."""

    key: AnswerKey
    acceptable: tuple[Provenance, ...]  # empty: any
    artifact: bool
    wait: float = 0.0  # seconds, for code that is being compiled
    domains: bool = False

    def to_message(self) -> Message:
        """As an attune.v1.GetBestRequest."""
        fields = {
            "problem": self.key.problem.to_message(),
            "device_id": self.key.device_id,
            "policy": self.key.policy.value,
            "acceptable": [provenance.value for provenance in self.acceptable],
            "include_artifact": self.artifact,
            "wait": api.duration(self.wait) if self.wait else None,
            "include_domains": self.domains,
            "objective": self.key.objective.value,
        }
        return arguments.request(api.message("GetBestRequest"), fields)

    def accepts(self, answer: Answer) -> bool:
        return not self.acceptable or answer.provenance in self.acceptable


def best(
    problem: Problem | str,
    *,
    device: str = "",
    policy: Policy | str = Policy.HOT,
    acceptable: Iterable[Provenance | str] = (),
    artifact: bool = False,
    wait: float | timedelta = 0.0,
    domains: bool = False,
    objective: Objective | str = Objective.TIME,
) -> Query:
    """The best known variant for a problem, never starting any work.

    `device`: empty is the server's first. `acceptable`: only these provenances; none means any. `artifact` asks
    for the compiled code, too. Where nobody has tuned the problem, the server compiles it in the background: the
    answer's `artifact_state` says how far that is, and `wait` is how many seconds, at most 60, to wait for it.
    `domains` asks, whatever is cached, for the ranges of lengths and batches that the answer holds for, too:
    Answer.at makes the answers there. `objective` ENERGY (joules a run) or EDP (those times its seconds) asks for what
    is best by that, as far as `tune` with that objective has measured it; otherwise the answer is the fastest, and its
    provenance_detail says why. A cached answer costs a look-up in a dict. When the server cannot be reached, the
    answer is an expired one from the cache or one from the snapshot, and its provenance_detail says so.
    Raises NotFound when nothing fits, Unreachable when nobody answers and nothing is kept.
    """
    key = AnswerKey(Problem.of(problem), device, Policy.of(policy))
    if objective is not Objective.TIME:
        key = key._replace(objective=unless_time(Objective.of(objective)))
    # Mostly there are neither, and a cached answer is to cost no more than its look-up.
    if acceptable != ():
        acceptable = tuple(map(Provenance.of, arguments.several("acceptable", acceptable, "'EXACT'")))
    return Query(key, acceptable, artifact, 0.0 if wait == 0 else arguments.seconds("wait", wait), domains)


class Lookup:
    """Answers without a call. Thread-safe."""

    def __init__(
        self, *, cache: AnswerCache, time_to_live: float, snapshot_path: str, unreachable_hold: float, clock: Clock
    ) -> None:
        self.cache = cache
        self._time_to_live = time_to_live
        self._snapshot_path = snapshot_path
        self._hold = unreachable_hold
        self._clock = clock
        self._lock = threading.Lock()
        self._snapshot: snapshot.Snapshot | AttuneError | None = None
        # Until then the server is taken to be unreachable, because of `_unreachable`.
        self._unreachable_until = float("-inf")
        self._unreachable: AttuneError | None = None

    def find(self, query: Query) -> Answer | None:
        """A fresh answer from the cache; while the server is held to be unreachable, what is kept."""
        now = self._clock.now()
        hit = None if query.domains else self.cache.find(query.key, query.artifact, now)
        if hit is not None and query.accepts(hit):
            return hit
        if now < self._unreachable_until and self._unreachable is not None:
            return self.without_server(query, copy.copy(self._unreachable))
        return None

    def fetch(self, query: Query) -> Plan[Answer]:
        """The server's answer, from then on in the cache; when nobody answers, what is kept."""
        try:
            return (yield from self.ask(query))
        except Unreachable as error:
            answer = self.without_server(query, error)
            with self._lock:
                self._unreachable = copy.copy(error)  # without its frames
                self._unreachable_until = self._clock.now() + self._hold
            return answer

    def _arrived(self, query: Query, response: Message) -> Answer:
        answer = Answer.from_message(response)
        # An answer to a narrower question is not the best one for everybody.
        if not query.acceptable:
            # What is being compiled is asked for again; it is kept for when nobody answers.
            ready = answer.artifact_state is not ArtifactState.COMPILING
            expires = self._clock.now() + (self._time_to_live if ready else 0.0)
            self.cache.put(query.key, Entry(answer, query.artifact, self._clock.wall(), expires))
        return answer

    def ask(self, query: Query) -> Plan[Answer]:
        """The server's answer of now, nobody else's; from then on in the cache."""
        return self._arrived(query, (yield Call("GetBest", query.to_message(), wait=query.wait)))

    def without_server(self, query: Query, error: AttuneError) -> Answer:
        """An expired answer or the snapshot's; raises `error`, why there is no server, when there is none."""
        expired = self.cache.find_even_expired(query.key)
        if expired and query.accepts(expired.answer) and (expired.with_artifact or not query.artifact):
            return expired.answer.with_source(f"the server's answer of {utc_text(expired.fetched)}")
        if not self._snapshot_path:
            raise error
        loaded = self._loaded()
        if isinstance(loaded, AttuneError):
            raise Unreachable(f"{error.message}; {loaded.message}", code=error.code)
        answer = loaded.find(query.key)
        if answer is None or not query.accepts(answer):
            raise Unreachable(
                f"{error.message}; the snapshot '{self._snapshot_path}' has no answer for {query.key.problem}",
                code=error.code,
            )
        return answer

    def kept_devices(self, error: AttuneError) -> Sequence[Message]:
        """The server's devices as the snapshot has them; raises `error` when there is no snapshot."""
        loaded = self._loaded() if self._snapshot_path else error
        if isinstance(loaded, AttuneError):
            raise error
        return loaded.devices.devices

    def renew_locks(self) -> None:
        """In the child of a fork: other threads of the parent may have held them."""
        self._lock = threading.Lock()
        self.cache.renew_lock()

    def _loaded(self) -> snapshot.Snapshot | AttuneError:
        """The snapshot, or why there is none; read at the first call, the same ever after."""
        with self._lock:
            if self._snapshot is None:
                try:
                    self._snapshot = snapshot.load(self._snapshot_path)
                except AttuneError as error:
                    self._snapshot = copy.copy(error)
                except OSError as error:
                    self._snapshot = AttuneError(f"cannot read the snapshot '{self._snapshot_path}': {error}")
            return self._snapshot
