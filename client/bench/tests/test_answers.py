from __future__ import annotations

import attune
import grpc
import pytest
from attune.problem import Problem
from fake import PROBLEM, message, operation

from attune_bench.answers import Tuning, ask
from attune_bench.work import flops

PROBLEMS = [Problem.parse(PROBLEM), Problem.parse("b1.h1.q128.d64.f16")]


@pytest.fixture
def client(server, clock):
    with attune.Client(server.address, clock=clock) as client:
        yield client


def test_asking_starts_no_work(server, client):
    answers = ask(client, PROBLEMS, "cuda:0", None)
    assert [answers[problem].variant.family for problem in PROBLEMS] == ["attention_wmma"] * 2
    with_artifact = [request.include_artifact for request in server.asked("GetBest")]
    assert with_artifact == [False, False, True, True], "all are compiled before the first is waited for"
    assert not server.asked("Tune")


def test_what_is_compiled_ahead_is_said_and_why_it_is_not(server, client, capsys):
    server.fail_next(1, grpc.StatusCode.NOT_FOUND, "no family fits")
    ask(client, PROBLEMS, "cuda:0", None, clock=lambda: 0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        f"compile 1/2  {PROBLEMS[0]}  no family fits  (0 s, about 0 s to go)",
        f"compile 2/2  {PROBLEMS[1]}  asked for  (0 s, about 0 s to go)",
    ]
    assert [line.split("  ")[0] for line in lines[2:]] == ["ask 1/2", "ask 2/2"]


def test_tuning_comes_before_asking_and_has_its_time(server, client):
    ask(client, PROBLEMS[:1], "cuda:1", Tuning(max_time=2.5, deadline=10), clock=lambda: 0)
    (request,) = server.asked("Tune")
    assert (request.device_id, request.strategy.max_time.ToMilliseconds()) == ("cuda:1", 2500)
    methods = [method for method, _ in server.requests]
    assert methods.index("Tune") < methods.index("GetBest")


def test_without_a_time_it_tunes_as_attune_tune_does(server, client):
    ask(client, PROBLEMS[:1], "cuda:0", Tuning(max_time=None, deadline=10), clock=lambda: 0)
    (request,) = server.asked("Tune")
    wanted = type(request.strategy)(kind=attune.Strategy.GUIDED.value)
    assert request.strategy == wanted, "no effort or budget of the bench's own"


def test_past_the_deadline_problems_are_asked_for_only(server, client):
    times = iter(range(100))
    ask(client, PROBLEMS, "cuda:0", Tuning(max_time=1, deadline=2), clock=lambda: next(times))
    (tuned,) = server.asked("Tune")
    assert tuned.problem.batch == 1, "the smaller problem is tuned first"
    assert len(server.asked("GetBest")) == 2


def test_a_problem_without_an_answer_has_the_reason_and_the_next_goes_on(server, client):
    server.fail_next(3, grpc.StatusCode.NOT_FOUND, "no family fits")  # for both, and then for the first again
    first, second = sorted(PROBLEMS, key=flops)
    answers = ask(client, PROBLEMS, "cuda:0", None)
    assert answers[first] == "no family fits"
    assert answers[second].variant.family == "attention_wmma"


def test_when_tuning_fails_what_is_served_is_asked_for_all_the_same(server, client, capsys):
    failed = operation(4, error=message("google.rpc.Status", code=13, message="the device is gone"))
    server.responses["WatchOperation"] = [failed]
    answers = ask(client, PROBLEMS[:1], "cuda:0", Tuning(max_time=1, deadline=10), clock=lambda: 0)
    assert answers[PROBLEMS[0]].variant.family == "attention_wmma"
    assert "the device is gone" in capsys.readouterr().err
