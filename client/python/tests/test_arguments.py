"""What callers give that cannot be: the argument is named, its value, and what is allowed; the server is not asked."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from fake import PROBLEM, answer, tuned

import attune
from attune import api
from attune.values import Answer

INF, NAN = math.inf, math.nan
OF_SECONDS = "a number of seconds or a timedelta, above 0 and at most 315576000000"
NO_LIMIT = rf"None \(no limit\), or {OF_SECONDS}"
POSITIVE = r"None \(no limit\) or a positive integer, at most 2147483647"


@pytest.mark.parametrize(
    ("method", "given", "name", "allowed"),
    [
        *[("tune", {"max_time": x}, "max_time", NO_LIMIT) for x in (INF, NAN, "5s", 0, -1, 1e300, True, timedelta(0))],
        *[("tune", {"max_trials": x}, "max_trials", POSITIVE) for x in (0, -1, 1.5, "5", True, 1 << 40)],
        *[("tune", {"seed": x}, "seed", "an integer from 0 to 18446744073709551615") for x in (-1, "1", 0.5)],
        ("tune", {"families": "attention_mma"}, "families", r"a sequence, such as \['attention_mma'\]"),
        ("tune", {"families": [1]}, "families", "a sequence, each a str"),
        ("tune", {"device": 0}, "device", "a str"),
        ("tune", {"request_id": 5}, "request_id", "a str"),
        ("tune", {"background": "yes"}, "background", "a bool"),
        ("tune", {"where": "BLOCK_M == 64"}, "where", r"a sequence, such as \['BLOCK_M == 64'\]"),
        ("tune", {"effort": "lots"}, "effort", "one of QUICK, STANDARD, FULL, EXHAUSTIVE"),
        ("tune", {"seed_from": "b1.h1.q8.d64.f16"}, "seed_from", "a sequence, such as"),
        ("tune", {"require": "attention_mma:BLOCK_M=64"}, "require", "a sequence, such as"),
        ("preflight", {"families": None}, "families", r"a sequence, such as \['attention_mma'\]"),
        *[("best", {"wait": x}, "wait", "a number of seconds .* at least 0 and at most") for x in (INF, "5", -1, None)],
        ("best", {"acceptable": "EXACT"}, "acceptable", r"a sequence, such as \['EXACT'\]"),
        ("best", {"device": 0}, "device", "a str"),
        ("best", {"artifact": "yes"}, "artifact", "a bool"),
        ("trials", {"verdicts": "OK"}, "verdicts", r"a sequence, such as \['OK'\]"),
        ("trials", {"device": 3}, "device", "a str"),
        *[("trials", {"limit": x}, "limit", "None or a positive integer, at most 2147483647") for x in ("3", -1, 2.0)],
        ("operations", {"active_only": "yes"}, "active_only", "a bool"),
        ("record_baseline", {"contender": "torch", "median_us": "5"}, "median_us", "a number"),
        ("roll_back", {"why": 3}, "why", "a str"),
    ],
)
def test_what_cannot_be_is_named_and_the_server_is_not_asked(connect, server, method, given, name, allowed):
    with pytest.raises(attune.InvalidArgument, match=rf"^{name} is .*; it must be {allowed}") as caught:
        getattr(connect(server), method)(PROBLEM, **given)
    assert repr(given[name]) in caught.value.message
    assert server.requests == []


def test_a_number_that_the_server_refuses_is_the_servers_to_refuse(connect, server):
    server.responses["GetBest"] = answer()
    connect(server).best(PROBLEM, wait=100)
    assert server.asked("GetBest")[0].wait.seconds == 100


@pytest.mark.parametrize(
    ("given", "seconds", "nanos"),
    [(2, 2, 0), (0.25, 0, 250_000_000), (timedelta(minutes=1, milliseconds=5), 60, 5_000_000), (1e-7, 0, 100)],
)
def test_a_time_may_be_any_number_of_seconds_or_a_timedelta(connect, server, given, seconds, nanos):
    server.responses["Tune"] = tuned()
    connect(server).tune(PROBLEM, max_time=given, max_trials=3)
    (request,) = server.asked("Tune")
    assert (request.strategy.max_time.seconds, request.strategy.max_time.nanos) == (seconds, nanos)
    assert request.strategy.max_trials == 3


def test_without_limits_none_are_asked_for(connect, server):
    server.responses["Tune"] = tuned()
    connect(server).tune(PROBLEM)
    (request,) = server.asked("Tune")
    assert (request.strategy.HasField("max_time"), request.strategy.max_trials) == (False, 0)


def test_a_duration_is_never_a_whole_second_of_nanoseconds():
    made = api.duration(math.nextafter(3.0, 0.0))
    assert (made.seconds, made.nanos) == (2, 999_999_999)


def test_an_answer_at_a_text():
    found = Answer.from_message(answer())
    assert found.at(PROBLEM) is found
    assert found.at("b9.h9.q9.d64.f16") is None


@pytest.mark.parametrize("problem", ["b2.h8", 7, None])
def test_an_answer_at_what_is_no_problem(problem):
    with pytest.raises(attune.InvalidArgument, match=r"problem .*b2\.h8\.q512\.d64\.f16\.causal"):
        Answer.from_message(answer()).at(problem)


@pytest.mark.parametrize(
    ("field", "value"), [("attempts", "3"), ("initial_wait", None), ("multiplier", NAN), ("jitter", "0"), ("jitter", 2)]
)
def test_a_retry_policy_names_its_field(field, value):
    with pytest.raises(attune.InvalidArgument, match=f"^{field} is {value!r}; it must be"):
        attune.RetryPolicy(**{field: value})


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"hold": "30"}, "a number of seconds, at least 0"),
        ({"wait": NAN}, "a number of seconds, at least 0"),
        ({"revalidate": 0}, "a number of seconds, at least 1"),
        ({"device": 3}, "the service's name for it, such as 'cuda:0', or None"),
        ({"acceptable": "EXACT"}, r"a sequence, such as \['EXACT'\]"),
    ],
)
def test_what_attention_is_configured_with(given, allowed):
    pytest.importorskip("torch")
    ((name, value),) = given.items()
    with pytest.raises(attune.InvalidArgument, match=f"^{name} is {value!r}; it must be {allowed}$"):
        attune.configure(attune.Client("unix:/nobody"), **given)


def test_what_is_warmed():
    pytest.importorskip("torch")
    with pytest.raises(attune.InvalidArgument, match=f"^problems is '{PROBLEM}'; it must be a sequence, such as"):
        attune.warm(PROBLEM)
    for timeout in ("3", INF):
        with pytest.raises(attune.InvalidArgument, match=f"^timeout is {timeout!r}; it must be a number of seconds"):
            attune.warm([], timeout=timeout)
