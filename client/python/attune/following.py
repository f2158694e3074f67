"""An operation followed from here: its progress as it comes, then its result."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING, TypeVar

import grpc

from attune.attachment import Attachment, Followed
from attune.status import to_error
from attune.values import Progress

if TYPE_CHECKING:
    from attune.client import Client

R = TypeVar("R")


class Following(Followed[R]):
    """Iterating gives the operation's Progress at once and after each change, and ends when it is done.

    To stop iterating detaches: the operation goes on, and iterating again attaches again. When the stream breaks with
    UNAVAILABLE, the iteration does so by itself, for as long as the client's `reattach_for`.
    """

    _client: Client

    def __iter__(self) -> Generator[Progress, None, None]:
        if self.operation.done:
            yield self.operation.progress
            return
        attachment = Attachment(self._client, self.name)
        while True:
            stream = self._client.watch(self.name)
            error = None
            try:
                for message in stream:
                    self.operation = attachment.received(message)
                    yield self.operation.progress
                    if self.operation.done:
                        return
            except grpc.RpcError as broken:
                error = to_error(broken, self._client.server)
            finally:
                stream.cancel()
            self._client.clock.sleep(attachment.ended(error))

    def result(self) -> R:
        """What the operation ends with, once it is done. Raises OperationFailed or Cancelled when it ended so."""
        with contextlib.closing(iter(self)) as progress:
            for _ in progress:
                pass
        return self._result()

    def cancel(self) -> None:
        """Stops the operation at once, its running trial unfinished; what was committed stays."""
        self.operation = self._client.cancel(self.name)
