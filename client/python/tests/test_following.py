"""An operation followed to its end, through streams that break. Every test runs for Client and for aio.Client."""

from __future__ import annotations

import threading

import grpc
import pytest
from fake import OPERATION, PROBLEM, message, operation, tuned

import attune
from attune.values import Phase, State

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def test_progress_comes_with_each_change(connect, server):
    server.responses["WatchOperation"] = [
        operation(1, progress={"phase": 1}),
        operation(
            2, progress={"phase": 4, "trials_done": 3, "trials_total": 9, "verdicts": [{"verdict": 1, "count": 3}]}
        ),
        tuned(),
    ]
    queued, running, _ = connect(server).tune(PROBLEM)
    assert queued.phase is Phase.QUEUED
    assert (running.phase, running.trials_done, running.trials_total) == (Phase.TRIALS, 3, 9)
    assert running.verdicts == {attune.Verdict.OK: 3}


def test_the_result_is_what_the_operation_ended_with(connect, server):
    result = connect(server).tune(PROBLEM).result()
    assert result.promoted
    assert result.decision == "there was no incumbent"
    assert result.winner.name == "trials/1"
    assert result.incumbent is None


def test_the_result_of_what_was_followed_to_its_end_asks_no_more(connect, server):
    tuning = connect(server).tune(PROBLEM)
    for _ in tuning:
        pass
    tuning.result()
    assert len(server.asked("WatchOperation")) == 1


def test_attaches_again_when_the_stream_breaks(connect, server, clock):
    streams = iter([[operation(2), UNAVAILABLE], [operation(2), UNAVAILABLE], [tuned()]])
    server.responses["WatchOperation"] = lambda request: next(streams)
    tuning = connect(server).tune(PROBLEM)
    assert len(list(tuning)) == 3
    assert tuning.result().promoted
    assert all(0.04 <= seconds <= 0.06 for seconds in clock.sleeps), "each time the first wait: it was attached"


def test_attaches_again_when_the_stream_ends_early(connect, server):
    streams = iter([[operation(2)], [tuned()]])
    server.responses["WatchOperation"] = lambda request: next(streams)
    assert connect(server).tune(PROBLEM).result().promoted


def test_gives_up_when_nobody_comes_back(connect, server, clock):
    streams = iter([[operation(2), UNAVAILABLE]])
    server.responses["WatchOperation"] = lambda request: next(streams, [UNAVAILABLE])
    began = clock.seconds
    with pytest.raises(attune.Unreachable):
        connect(server, reattach_for=10.0).tune(PROBLEM).result()
    assert 6 < clock.seconds - began <= 10


def test_a_stream_never_reached_gets_no_more_patience_than_a_call(connect, server):
    server.responses["WatchOperation"] = [UNAVAILABLE]
    with pytest.raises(attune.Unreachable):
        connect(server).tune(PROBLEM).result()
    assert len(server.asked("WatchOperation")) == 4


def test_another_error_of_the_stream_ends_it(connect, server):
    server.responses["WatchOperation"] = [operation(2), grpc.StatusCode.NOT_FOUND]
    with pytest.raises(attune.NotFound, match="the stream breaks"):
        connect(server).tune(PROBLEM).result()
    assert len(server.asked("WatchOperation")) == 1


def test_to_stop_iterating_detaches(connect, server):
    detached = threading.Event()
    server.responses["WatchOperation"] = [operation(2), detached, tuned()]
    tuning = connect(server).tune(PROBLEM)
    progress = iter(tuning)
    next(progress)
    progress.close()
    assert detached.wait(60), "the server saw the stream end"
    assert server.asked("CancelOperation") == []
    server.responses["WatchOperation"] = [tuned()]
    assert tuning.result().promoted, "iterating again attaches again"


def test_cancelling_is_asked_of_the_server(connect, server):
    server.responses["CancelOperation"] = operation(5)
    tuning = connect(server).tune(PROBLEM)
    tuning.cancel()
    assert server.asked("CancelOperation")[0].name == OPERATION
    with pytest.raises(attune.Cancelled, match=f"tune {PROBLEM} was cancelled"):
        tuning.result()


def test_a_failed_operation_raises_its_error(connect, server):
    server.responses["WatchOperation"] = [operation(4, error={"code": 9, "message": "no family fits"})]
    with pytest.raises(attune.OperationFailed, match=f"tune {PROBLEM} failed: no family fits") as caught:
        connect(server).tune(PROBLEM).result()
    assert caught.value.code == "FAILED_PRECONDITION"


def test_an_operation_that_already_ended_needs_no_stream(connect, server):
    server.responses["Tune"] = tuned()
    tuning = connect(server).tune(PROBLEM)
    assert len(list(tuning)) == 1
    assert tuning.result().promoted
    assert server.asked("WatchOperation") == []


def test_anybody_can_follow(connect, server):
    following = connect(server).follow(OPERATION)
    assert following.operation.state is State.RUNNING
    assert following.result().promoted


def test_an_operation_has_no_result_while_it_runs(connect, server):
    with pytest.raises(attune.FailedPrecondition, match="is RUNNING"):
        connect(server).operation(OPERATION).result()


def test_a_tuning_is_asked_for_with_all_it_was_given(connect, server):
    connect(server).tune(
        PROBLEM,
        device="cuda:1",
        policy="cold",
        families=["attention_wmma"],
        strategy="guided",
        effort="quick",
        max_trials=5,
        max_time=1.5,
        seed=3,
        retry_known=True,
        background=True,
        energy=True,
        cards=2,
        objective="edp",
        request_id="mine",
        seed_from=["b1.h2.kvh2.q64.d64.f16"],
    )
    (request,) = server.asked("Tune")
    assert (request.request_id, request.device_id, request.policy) == ("mine", "cuda:1", 2)
    assert list(request.families) == ["attention_wmma"]
    strategy = request.strategy
    assert (strategy.kind, strategy.max_trials, strategy.max_time.ToMilliseconds(), strategy.seed) == (3, 5, 1500, 3)
    assert strategy.effort == attune.Effort.QUICK.value
    assert list(request.seed_from) == ["b1.h2.q64.d64.f16"]
    assert request.retry_known
    assert request.background
    assert request.energy
    assert request.cards == 2
    assert request.objective == attune.values.Objective.EDP.value


def test_a_sweep_takes_text_a_file_or_a_message(connect, server, tmp_path):
    report = operation(
        3, sweep={"title": "nightly", "markdown": "# Sweep", "rows": [{"problem": PROBLEM, "outcome": 4}]}
    )
    server.responses["Sweep"] = report
    text = f'title: "nightly" shapes {{ problem: "{PROBLEM}" }}'
    file = tmp_path / "plan.textproto"
    file.write_text(text)
    plan = message("SweepPlan", title="nightly", shapes=[{"problem": [PROBLEM]}])
    client = connect(server)
    for given in (text, file, plan):
        (row,) = client.sweep(given).result().rows
        assert row.outcome.name == "SLOWER"
    assert [request.plan for request in server.asked("Sweep")] == [plan] * 3


def test_a_plan_that_is_none_says_where(connect, server):
    with pytest.raises(attune.InvalidArgument, match="plan:2:3"):
        connect(server).sweep('title: "nightly"\n  shape {}')
    assert server.requests == []
