"""The async counterpart of attune.Client: the same methods, awaited, on grpc.aio.

    async with attune.aio.Client("l4:7411") as client:
        answer = await client.best("b2.h8.q512.d64.f16")
        async for progress in await client.tune("b2.h8.q512.d64.f16"):
            print(progress.trials_done)

What is not I/O is shared: requests and what becomes of their answers (attune.plans), the cache, the snapshot.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from attune import api
from attune.attachment import Attachment, Followed
from attune.core import Core, described, stubs
from attune.errors import AttuneError
from attune.lookup import Query, best
from attune.plans import blobs, export, profiling, results, server, submissions, work
from attune.plans.plan import Call, Plan, advance
from attune.status import to_error
from attune.values import (
    Answer,
    EvaluateResult,
    Operation,
    ProfileResult,
    Progress,
    SanitizeResult,
    SubmitResult,
    SweepReport,
    TuneResult,
)
from attune.values.operation import Result

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


class Following(Followed[R]):
    """Iterating gives the operation's Progress at once and after each change, and ends when it is done.

    As attune.following.Following, with `async for` and awaited methods.
    """

    _client: Client

    async def __aiter__(self) -> AsyncGenerator[Progress, None]:
        if self.operation.done:
            yield self.operation.progress
            return
        attachment = Attachment(self._client, self.name)
        while True:
            stream = self._client.watch(self.name)
            error = None
            try:
                async for message in stream:
                    self.operation = attachment.received(message)
                    yield self.operation.progress
                    if self.operation.done:
                        return
            except grpc.RpcError as broken:
                error = to_error(broken, self._client.server)
            finally:
                stream.cancel()
            await self._client.clock.sleep_async(attachment.ended(error))

    async def result(self) -> R:
        """What the operation ends with, once it is done. Raises OperationFailed or Cancelled when it ended so."""
        async with contextlib.aclosing(aiter(self)) as progress:
            async for _ in progress:
                pass
        return self._result()

    async def cancel(self) -> None:
        """Stops the operation at once, its running trial unfinished; what was committed stays."""
        self.operation = await self._client.cancel(self.name)


def _carries_out(builder: Callable[P, Plan[T]]) -> Callable[Concatenate[Client, P], Awaitable[T]]:
    async def method(self: Client, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.carry_out(builder(*args, **kwargs))

    return described(method, builder)


def _follows(
    builder: Callable[P, Plan[Operation]], result: type[R]
) -> Callable[Concatenate[Client, P], Awaitable[Following[R]]]:
    async def method(self: Client, *args: P.args, **kwargs: P.kwargs) -> Following[R]:
        return Following(self, await self.carry_out(builder(*args, **kwargs)))

    return described(method, builder, f"Following[{result.__name__}]")


def _looks_up(builder: Callable[P, Query]) -> Callable[Concatenate[Client, P], Awaitable[Answer]]:
    async def method(self: Client, *args: P.args, **kwargs: P.kwargs) -> Answer:
        query = builder(*args, **kwargs)
        found = self.lookup.find(query)
        return found if found is not None else await self.carry_out(self.lookup.fetch(query))

    return described(method, builder, "Answer")


class Client(Core):
    """As attune.Client, for one event loop: that of the first call."""

    best = _looks_up(best)

    tune = _follows(work.tune, TuneResult)
    evaluate = _follows(work.evaluate, EvaluateResult)
    submit = _follows(submissions.submit, SubmitResult)
    profile = _follows(profiling.profile, ProfileResult)
    sanitize = _follows(profiling.sanitize, SanitizeResult)
    submission = _carries_out(submissions.submission)
    adopt = _carries_out(submissions.adopt)
    withdraw = _carries_out(submissions.withdraw)
    submissions = _carries_out(submissions.submissions)
    sweep = _follows(work.sweep, SweepReport)
    plan_sweep = _carries_out(work.plan_sweep)
    operation = _carries_out(work.operation)
    operations = _carries_out(work.operations)
    cancel = _carries_out(work.cancel)

    trials = _carries_out(results.trials)
    trial = _carries_out(results.trial)
    retry_trials = _carries_out(results.retry_trials)
    explain = _carries_out(results.explain)
    incumbents = _carries_out(results.incumbents)
    roll_back = _carries_out(results.roll_back)
    unpin = _carries_out(results.unpin)
    record_baseline = _carries_out(results.record_baseline)
    baselines = _carries_out(results.baselines)
    misses = _carries_out(results.misses)
    retimings = _carries_out(results.retimings)
    trends = _carries_out(results.trends)
    compare = _carries_out(results.compare)

    host = _carries_out(server.host)
    devices = _carries_out(server.devices)
    families = _carries_out(server.families)
    preflight = _carries_out(server.preflight)
    ping = _carries_out(server.ping)
    export_snapshot = _carries_out(export.export_snapshot)

    get_blobs = _carries_out(blobs.get_blobs)
    put_blob = _carries_out(blobs.put_blob)
    delete_blobs = _carries_out(blobs.delete_blobs)
    blobs = _carries_out(blobs.blobs)

    async def follow(self, name: str) -> Following[Result]:
        """Attaches to the operation "operations/...", whoever started it."""
        return Following(self, await self.operation(name))

    async def carry_out(self, plan: Plan[T]) -> T:
        """Makes the plan's calls and returns what it comes to."""
        outcome: Message | AttuneError | None = None
        try:
            while True:
                call = advance(plan, outcome)
                try:
                    outcome = await self._make(call)
                except AttuneError as error:
                    outcome = error
        except StopIteration as end:
            return end.value

    def watch(self, name: str) -> Any:
        """The stream of the operation's messages, a grpc.aio.Call; most want `follow`."""
        self.check_open()
        return self._stub("WatchOperation")(api.METHODS["WatchOperation"].request(name=name), metadata=self.metadata())

    async def close(self) -> None:
        """Ends the connection. What would make a call raises FailedPrecondition afterwards."""
        self.closed = True
        if self._channel is not None:
            await self._channel.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def _connect(self) -> None:
        self._channel: grpc.aio.Channel | None = None
        self._stubs: dict[str, Any] = {}

    def _stub(self, method: str) -> Any:
        if self._channel is None:  # a channel belongs to the event loop that it is made in
            self._channel = self._channel_of(grpc.aio)
            self._stubs = stubs(self._channel)
        return self._stubs[method]

    async def _make(self, call: Call) -> Message:
        attempts = self.attempts(call)
        try:
            while True:
                try:
                    return await self._stub(call.method)(
                        call.request, timeout=attempts.time_left(), metadata=self.metadata()
                    )
                except grpc.RpcError as broken:
                    error = to_error(broken, self.server)
                await self.clock.sleep_async(attempts.wait_after(error))
        finally:
            if call.outdates_answers:
                self.clear_cache()
