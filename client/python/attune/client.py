"""The client: asks a server for the best variant of a problem, and has it tuned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import grpc
from google.protobuf.message import Message

from attune import api
from attune.core import Core, described, stubs
from attune.errors import AttuneError
from attune.following import Following
from attune.lookup import Query, best
from attune.plans import blobs, export, profiling, results, server, submissions, work
from attune.plans.plan import Call, Plan, advance
from attune.status import to_error
from attune.values import (
    Answer,
    EvaluateResult,
    Operation,
    ProfileResult,
    SanitizeResult,
    SubmitResult,
    SweepReport,
    TuneResult,
)
from attune.values.operation import Result

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


def _carries_out(builder: Callable[P, Plan[T]]) -> Callable[Concatenate[Client, P], T]:
    def method(self: Client, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.carry_out(builder(*args, **kwargs))

    return described(method, builder)


def _follows(builder: Callable[P, Plan[Operation]], result: type[R]) -> Callable[Concatenate[Client, P], Following[R]]:
    def method(self: Client, *args: P.args, **kwargs: P.kwargs) -> Following[R]:
        return Following(self, self.carry_out(builder(*args, **kwargs)))

    return described(method, builder, f"Following[{result.__name__}]")


def _looks_up(builder: Callable[P, Query]) -> Callable[Concatenate[Client, P], Answer]:
    def method(self: Client, *args: P.args, **kwargs: P.kwargs) -> Answer:
        query = builder(*args, **kwargs)
        found = self.lookup.find(query)
        return found if found is not None else self.carry_out(self.lookup.fetch(query))

    return described(method, builder, "Answer")


class Client(Core):
    """Every method may be called from any thread at once. Answers are immutable and outlive the client.

    Errors are attune.AttuneError and its subclasses. A call answered UNAVAILABLE is tried again inside its deadline;
    roll_back and record_baseline are not, because doing them twice is not doing them once. Starts of work are,
    because their request_id makes them idempotent.
    """

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

    def follow(self, name: str) -> Following[Result]:
        """Attaches to the operation "operations/...", whoever started it."""
        return Following(self, self.operation(name))

    def carry_out(self, plan: Plan[T]) -> T:
        """Makes the plan's calls and returns what it comes to."""
        outcome: Message | AttuneError | None = None
        try:
            while True:
                call = advance(plan, outcome)
                try:
                    outcome = self._make(call)
                except AttuneError as error:
                    outcome = error
        except StopIteration as end:
            return end.value

    def _start(self, plan: Plan[Any], done: Callable[[Any], None]) -> None:
        """Makes the plan's first call and waits for nothing: `done` is called in a thread of gRPC's, with the response,
        or with None where there was none. The call is made once."""
        call = advance(plan, None)
        self.check_open()
        made = self._stubs[call.method].future(
            call.request, timeout=self.deadline + call.wait, metadata=self.metadata()
        )
        made.add_done_callback(lambda ended: done(ended.result() if ended.code() is grpc.StatusCode.OK else None))

    def watch(self, name: str) -> Any:
        """The stream of the operation's messages, a grpc.Call; most want `follow`."""
        self.check_open()
        return self._stubs["WatchOperation"](api.METHODS["WatchOperation"].request(name=name), metadata=self.metadata())

    def close(self) -> None:
        """Ends the connection. What would make a call raises FailedPrecondition afterwards."""
        self.closed = True
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _connect(self) -> None:
        self._channel = self._channel_of(grpc)
        self._stubs = stubs(self._channel)

    def _make(self, call: Call) -> Message:
        attempts = self.attempts(call)
        try:
            while True:
                try:
                    return self._stubs[call.method](
                        call.request, timeout=attempts.time_left(), metadata=self.metadata()
                    )
                except grpc.RpcError as broken:
                    error = to_error(broken, self.server)
                self.clock.sleep(attempts.wait_after(error))
        finally:
            if call.outdates_answers:
                self.clear_cache()
