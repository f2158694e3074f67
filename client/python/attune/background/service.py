"""What attention asks of the service. Every method may block, so that only the background thread calls them."""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from attune.background.head_dims import padded
from attune.background.reason import Reason, Unsuitable
from attune.background.records import Report
from attune.background.settings import Settings
from attune.client import Client
from attune.cuda.device import modules
from attune.errors import NotFound, Unreachable
from attune.lookup import Query, best
from attune.plans.plan import pages
from attune.problem import Problem
from attune.retry import Backoff, RetryPolicy
from attune.values import Answer, ArtifactState, Backend, Device
from attune.values.domain import parse_ranges

T = TypeVar("T")

_FIRST_WAIT = 1.0  # seconds before a service that could not be reached is asked again
_LONGEST_COMPILE_S = 30.0  # that one call waits for
_LONGEST_WAITS = 8  # times `hold`, for what the service keeps having no answer for


class Gpu(NamedTuple):
    """One of this process's, as the driver describes it."""

    model: str
    uuid: str  # without "GPU-"; empty if not known


def waits(first: float, longest: float) -> Backoff:
    """How long to wait after each failure; spread, so that processes do not come back in step."""
    return Backoff(RetryPolicy(initial_wait=min(first, longest) * 0.9, longest_wait=longest * 0.9, jitter=0.1))


def waits_for_answers(hold: float) -> Backoff:
    return waits(hold, hold * _LONGEST_WAITS)


def unanswered(problem: Problem, error: Exception) -> Unsuitable:
    """Why there is no kernel for `problem`, of an error that Service.answer raised."""
    if isinstance(error, Unsuitable):
        return error
    if isinstance(error, Unreachable):
        return Unsuitable(Reason.UNREACHABLE, f"{error}; it is asked again from time to time")
    if isinstance(error, NotFound):
        return Unsuitable(Reason.NO_ANSWER, str(error), parse_ranges(error.metadata.get("holds_for", "")))
    return Unsuitable(Reason.NOT_LOADED, f"{problem}: {error}")


def check_code(problem: Problem, answer: Answer) -> None:
    """Raises Unsuitable for an answer that comes without code."""
    if answer.artifact_state is ArtifactState.COMPILING:
        raise Unsuitable(Reason.PENDING, f"the service is compiling the kernel for {problem}", answer.domains)
    if answer.artifact_state is ArtifactState.NONE:
        why = f"there is no code for {problem}: {answer.artifact_reason}"
        raise Unsuitable(Reason.NOT_LOADED, why, answer.domains)


class Service:
    """One service under one configuration, over a connection of its own. For one thread; `close` is for any."""

    def __init__(self, settings: Settings, gpu_of: Callable[[int], Gpu]) -> None:
        """`gpu_of`: this process's GPU of an index."""
        self._settings = settings
        self._gpu_of = gpu_of
        self._client: Client | None = None
        self._closed = False
        self._devices: dict[int, str] = {}
        self._unknown: dict[int, tuple[float, Unsuitable, Backoff]] = {}  # GPUs that the service does not know
        self.unreachable_until = -math.inf  # of time.monotonic
        self._unreachable: Unreachable = Unreachable("nobody was asked")
        self._waits = waits(_FIRST_WAIT, settings.hold)

    def reachable(self) -> bool:
        """Whether it may be asked now: it answered the last time, or that was long enough ago."""
        return time.monotonic() >= self.unreachable_until

    def answer(self, problem: Problem, index: int, *, kept: bool) -> Answer:
        """The answer for this process's GPU `index`, with its artifact unless that is COMPILING or loaded already.

        A problem with a head_dim that no kernel takes has the padded problem's (head_dims.py). `kept`: while the
        service cannot be reached the client's snapshot may answer. Raises AttuneError, Unreachable among them, and
        Unsuitable for a GPU that the service does not know."""
        asked = padded(problem)
        try:
            return self._reached(lambda: self._ask(asked, index))
        except Unreachable as error:
            if not kept:
                raise
            return self._kept(asked, index, error)

    def answer_without_code(self, problem: Problem, index: int) -> Answer:
        """`answer`, for what it says."""
        asked = padded(problem)
        try:
            return self._reached(lambda: self._ask_without_code(asked, index))
        except Unreachable as error:
            return self._kept(asked, index, error)

    def when_compiled(self, problem: Problem, index: int, done: Callable[[bool], None]) -> None:
        """Calls `done` in another thread once the service compiles the code for `problem` no longer; with False where
        nobody said so in time."""
        try:
            client, device = self._connected(), self._device(index)
            query = self._query(padded(problem), device, artifact=False)
            plan = client.lookup.ask(dataclasses.replace(query, domains=False, wait=_LONGEST_COMPILE_S))
            # A service with too much to do answers at once, of code that it still compiles.
            client._start(
                plan, lambda answer: done(answer is not None and answer.artifact_state != ArtifactState.COMPILING.value)
            )
        except Exception:  # a channel that was closed meanwhile raises ValueError
            done(False)

    def served(self) -> object:
        """What changes with every promotion and roll-back on the service."""
        return self._reached(self._ask_served)

    def record(self, report: Report) -> None:
        """Has the service remember what a contest came to, for other processes."""
        self._reached(lambda: self._connected().record_baseline(**report._asdict(), policy=self._settings.policy))

    def close(self) -> None:
        """Ends the connection, and with it a call that another thread is waiting in."""
        self._closed = True
        client = self._client
        if client is not None:
            client.close()

    def _reached(self, ask: Callable[[], T]) -> T:
        if not self.reachable():
            raise copy.copy(self._unreachable)
        try:
            found = ask()
        except Unreachable as error:
            self._unreachable = copy.copy(error)
            self.unreachable_until = time.monotonic() + self._waits.next()
            raise
        self._waits.reset()
        return found

    def _connected(self) -> Client:
        if self._client is None:
            self._client = self._settings.client.sibling()
        if self._closed:
            self._client.close()
            raise Unreachable("attune.refresh or attune.configure ended this connection")
        return self._client

    def _ask(self, problem: Problem, index: int) -> Answer:
        answer = self._ask_without_code(problem, index)
        compiling = answer.artifact_state is ArtifactState.COMPILING
        if compiling or modules().has(answer.artifact_sha256):
            return answer
        client, device = self._connected(), self._device(index)
        return client.carry_out(client.lookup.ask(self._query(problem, device, artifact=True)))

    def _ask_without_code(self, problem: Problem, index: int) -> Answer:
        client, device = self._connected(), self._device(index)
        return client.carry_out(client.lookup.ask(self._query(problem, device, artifact=False)))

    def _kept(self, problem: Problem, index: int, error: Unreachable) -> Answer:
        lookup = self._settings.client.lookup
        device = self._settings.device or self._devices.get(index)
        if device is None:
            device = self._same_device(index, [Device.from_message(known) for known in lookup.kept_devices(error)])
        answer = lookup.without_server(self._query(problem, device, artifact=True), copy.copy(error))
        if answer.artifact_state is ArtifactState.COMPILING:  # for nobody that could be asked for it
            raise copy.copy(error)
        return answer

    def _ask_served(self) -> int:
        names = self._connected().carry_out(pages("ListIncumbents", "incumbents", lambda message: message.name, None))
        return hash(tuple(names))

    def _query(self, problem: Problem, device: str, *, artifact: bool) -> Query:
        settings = self._settings
        return best(
            problem,
            device=device,
            policy=settings.policy,
            acceptable=settings.acceptable,
            artifact=artifact,
            domains=True,
        )

    def _device(self, index: int) -> str:
        """The service's name for this process's GPU."""
        if self._settings.device is not None:
            return self._settings.device
        if index not in self._devices:
            until, unsuitable, again = self._unknown.get(index, (-math.inf, None, None))
            if unsuitable is not None and time.monotonic() < until:
                raise unsuitable.again()
            try:
                self._devices[index] = self._same_device(index, self._connected().devices())
            except Unsuitable as error:
                again = again or waits_for_answers(self._settings.hold)
                self._unknown[index] = time.monotonic() + again.next(), error.again(), again
                raise
        return self._devices[index]

    def _same_device(self, index: int, devices: Sequence[Device]) -> str:
        here = self._gpu_of(index)
        known = [device for device in devices if device.backend is Backend.CUDA]
        same = [device for device in known if here.uuid and device.uuid.removeprefix("GPU-") == here.uuid]
        same += [device for device in known if device.model == here.model]
        if not same:
            models = ", ".join(f"{device.id} ({device.model})" for device in known) or "no CUDA device"
            raise Unsuitable(Reason.NO_ANSWER, f"cuda:{index} is a {here.model}; the service knows {models}")
        return same[0].id
