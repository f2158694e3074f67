"""Following an operation through a stream that outlives its connection, without the I/O."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

from google.protobuf.message import Message

from attune.core import Core
from attune.errors import AttuneError, Unreachable
from attune.retry import Backoff
from attune.values import Operation

R = TypeVar("R")


class Followed(Generic[R]):
    """An operation that `client` follows; R is what it ends with."""

    def __init__(self, client: Core, operation: Operation) -> None:
        self._client = client
        self.operation = operation  # as last seen

    @property
    def name(self) -> str:
        """The operation's: "operations/..."."""
        return self.operation.name

    def _result(self) -> R:
        return cast("R", self.operation.result())

    def __repr__(self) -> str:
        return f"<{self.operation.title or self.name}: {self.operation.state}>"


class Attachment:
    """Told of each message and of the stream's end, says how long to wait before attaching again."""

    def __init__(self, core: Core, name: str) -> None:
        self._core = core
        self._name = name
        self._backoff = Backoff(core.retry)
        self._give_up = core.clock.now() + core.reattach_for
        self._attached = False
        self._attempts = 0

    def received(self, message: Message) -> Operation:
        self._attached = True
        self._give_up = self._core.clock.now() + self._core.reattach_for
        self._backoff.reset()
        operation = Operation.from_message(message)
        if operation.done:
            self._core.clear_cache()  # what it promoted is the better answer now
        return operation

    def ended(self, error: AttuneError | None) -> float:
        """Seconds to wait before attaching again to an operation that is not done; raises when there is no hope."""
        if error is None:  # a server that is going away politely
            error = Unreachable(f"the stream of {self._name} ended early")
        if error.code != "UNAVAILABLE":
            raise error
        # One that was never reached is given no more patience than any other call.
        self._attempts += 1
        if not self._attached and self._attempts >= self._core.retry.attempts:
            raise error
        wait = self._backoff.next()
        if self._core.clock.now() + wait >= self._give_up:
            raise error
        return wait
