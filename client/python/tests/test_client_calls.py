"""How a call is made: its errors, its retries, its deadline. Every test runs for Client and for aio.Client."""

from __future__ import annotations

import math
import socket

import grpc
import pytest
from fake import OPERATION, PROBLEM, error_info, message, problem
from golden import golden

import attune
from attune.default_server import default_server

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("address", ["", "nonsense", "host:0", "host:70000", ":7411", "unix:"])
def test_an_address_that_is_none_is_rejected(address):
    with pytest.raises(attune.InvalidArgument, match=r"it must be host:port with a port of 1..65535, or unix:/path"):
        attune.Client(address)


def test_the_server_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("ATTUNE_SERVER", "l4:7411")
    assert attune.Client().server == "l4:7411"


@pytest.mark.parametrize("vector", golden("default_server"))
def test_without_it_the_server_is_a_socket_of_this_host_or_localhost(vector):
    environ = {name: vector[name] for name in ("ATTUNE_SERVER", "XDG_RUNTIME_DIR") if vector[name] is not None}
    assert default_server(environ, lambda path: path in vector["sockets"]) == vector["server"]


def test_the_socket_of_the_users_own_daemon_is_found(tmp_path, monkeypatch):
    monkeypatch.delenv("ATTUNE_SERVER", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "attune").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "attune/attuned.sock"))
        assert attune.Client().server == f"unix:{tmp_path}/attune/attuned.sock"


def test_an_address_of_the_environments_is_named_as_that(monkeypatch):
    monkeypatch.setenv("ATTUNE_SERVER", "l4")
    with pytest.raises(attune.InvalidArgument, match=r"^\$ATTUNE_SERVER is 'l4'; it must be host:port"):
        attune.Client()


@pytest.mark.parametrize("kind", [attune.Client, attune.aio.Client])
@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("server", 7411, "must be a str"),
        ("deadline", -1, "must be a positive number of seconds"),
        ("deadline", 0, "must be a positive number of seconds"),
        ("deadline", math.nan, "must be a positive number of seconds"),
        ("deadline", "5", "must be a positive number of seconds"),
        ("cache_capacity", None, "must be a number, at least 0"),
        ("cache_ttl", -1.5, "must be a number, at least 0"),
        ("cache_capacity", -1, "must be a number, at least 0"),
        ("unreachable_hold", math.nan, "must be a number, at least 0"),
        ("reattach_for", -1, "must be a number, at least 0"),
    ],
)
def test_an_option_that_cannot_be_is_named_with_its_value(kind, option, value, allowed):
    with pytest.raises(attune.InvalidArgument, match=f"^{option} is {value!r}; it {allowed}$"):
        kind(**{"server": "l4:7411", option: value})


def test_a_closed_client_says_that_it_is_closed(connect, server):
    client = connect(server)
    client.ping()
    client.close()
    for call in (client.ping, lambda: client.best(PROBLEM), lambda: client.tune(PROBLEM)):
        with pytest.raises(attune.AttuneError, match=r"^the client of unix:.* is closed; make another one$") as caught:
            call()
        assert caught.value.code == "FAILED_PRECONDITION"


def test_the_sibling_of_a_closed_client_is_open(server):
    with attune.Client(server.address) as client:
        pass
    with client.sibling() as sibling:
        sibling.ping()


def test_a_call_is_tried_again_on_unavailable(connect, server, clock):
    server.fail_next(3, UNAVAILABLE)
    connect(server).ping()
    assert len(server.asked("Ping")) == 4
    assert [0.8 * w <= s <= 1.2 * w for s, w in zip(clock.sleeps, (0.05, 0.1, 0.2), strict=True)] == [True] * 3


def test_attempts_end(connect, server):
    server.fail_next(4, UNAVAILABLE)
    with pytest.raises(attune.Unreachable, match="no server reached at unix:"):
        connect(server).ping()
    assert len(server.asked("Ping")) == 4


def test_no_attempt_begins_past_the_deadline(connect, server):
    server.fail_next(4, UNAVAILABLE)
    with pytest.raises(attune.Unreachable):
        connect(server, deadline=60.0, retry=attune.RetryPolicy(initial_wait=30.0, longest_wait=120.0)).ping()
    assert len(server.asked("Ping")) == 2, "30 s of waiting fit into 60 s, 90 s do not"


def test_nothing_else_is_tried_again(connect, server):
    server.fail_next(1, grpc.StatusCode.INTERNAL)
    with pytest.raises(attune.AttuneError) as caught:
        connect(server).ping()
    assert caught.value.code == "INTERNAL"
    assert len(server.asked("Ping")) == 1


@pytest.mark.parametrize("method", ["roll_back", "record_baseline"])
def test_what_must_not_be_done_twice_is_not_tried_again(connect, server, method):
    server.fail_next(1, UNAVAILABLE)
    arguments = {"roll_back": (PROBLEM,), "record_baseline": (PROBLEM, "torch", 47.0)}[method]
    with pytest.raises(attune.Unreachable):
        getattr(connect(server), method)(*arguments)
    assert len(server.requests) == 1


def test_a_retried_start_carries_the_same_request_id(connect, server):
    server.fail_next(2, UNAVAILABLE)
    client = connect(server)
    client.tune(PROBLEM)
    first, second, third = (request.request_id for request in server.asked("Tune"))
    assert first == second == third
    assert len(first) == 32
    client.tune(PROBLEM)
    assert server.asked("Tune")[-1].request_id != first, "another start is another request"


def test_an_answer_that_does_not_come_in_time_is_unreachable(connect, server, clock):
    server.fail_next(1, grpc.StatusCode.DEADLINE_EXCEEDED)
    with pytest.raises(attune.Unreachable, match="did not answer in time") as caught:
        connect(server).devices()
    assert caught.value.code == "DEADLINE_EXCEEDED"


def test_each_call_carries_its_deadline(connect, server):
    connect(server, deadline=30.0).ping()
    assert 25 < server.times_left[0] < 35


def test_a_retry_has_only_what_is_left_of_the_deadline(connect, server, clock):
    server.fail_next(1, UNAVAILABLE)
    connect(server, deadline=30.0, retry=attune.RetryPolicy(initial_wait=20.0, longest_wait=20.0, jitter=0)).ping()
    assert 0 < server.times_left[1] < 15


def test_the_servers_reason_and_metadata_are_unpacked(connect, server):
    trailers = error_info("UNKNOWN_DEVICE", device="cuda:9")
    server.fail_next(1, grpc.StatusCode.NOT_FOUND, "device 'cuda:9' is not here", trailers)
    with pytest.raises(attune.NotFound) as caught:
        connect(server).best(PROBLEM, device="cuda:9")
    assert caught.value.reason == "UNKNOWN_DEVICE"
    assert caught.value.metadata == {"device": "cuda:9"}
    assert str(caught.value) == "device 'cuda:9' is not here [UNKNOWN_DEVICE device=cuda:9]"


def test_details_that_are_no_status_do_not_hide_the_error(connect, server):
    server.fail_next(1, grpc.StatusCode.NOT_FOUND, "gone", (("grpc-status-details-bin", b"\xff\xff\xff"),))
    with pytest.raises(attune.NotFound, match="gone"):
        connect(server).trial(1)


def test_names_may_be_numbers(connect, server):
    server.responses["GetTrial"] = message("Trial", name="trials/12", problem=problem())
    client = connect(server)
    for name in ("trials/12", "12", 12):
        client.trial(name)
    client.operation(OPERATION.removeprefix("operations/"))
    assert [request.name for request in server.asked("GetTrial")] == ["trials/12"] * 3
    assert server.asked("GetOperation")[0].name == OPERATION


def test_a_pin_is_an_evaluation_that_says_so(connect, server):
    server.responses["EvaluateVariant"] = message("Operation", name=OPERATION)
    client = connect(server)
    client.evaluate(PROBLEM, "attention_simt:BLOCK_M=64", pin=True, why="as last month")
    client.evaluate(PROBLEM, "attention_simt:BLOCK_M=64")
    pinned, plain = server.asked("EvaluateVariant")
    assert (pinned.pin, pinned.why, plain.pin) == (True, "as last month", False)


def test_unpinning_outdates_answers(connect, server):
    trial = {"name": "trials/1", "problem": problem()}
    server.responses["Unpin"] = message("Incumbent", name="incumbents/3", problem=problem(), trial=trial)
    client = connect(server)
    client.best(PROBLEM)
    assert client.unpin(PROBLEM).name == "incumbents/3"
    client.best(PROBLEM)
    assert len(server.asked("GetBest")) == 2


def test_a_roll_back_goes_to_a_named_incumbent(connect, server):
    trial = {"name": "trials/1", "problem": problem()}
    server.responses["RollBack"] = message("Incumbent", name="incumbents/3", problem=problem(), trial=trial)
    client = connect(server)
    client.roll_back(PROBLEM)
    for to in (3, "3", "incumbents/3", client.roll_back(PROBLEM)):
        client.roll_back(PROBLEM, to=to)
    assert [request.to for request in server.asked("RollBack")] == ["", "", *["incumbents/3"] * 4]


def test_trials_to_retry_are_named_by_filter(connect, server):
    server.responses["RetryTrials"] = message("RetryTrialsResponse", trials=14, codes=3, problems=[PROBLEM])
    retried = connect(server).retry_trials(["CRASHED"], PROBLEM, family="attention_simt")
    assert (retried.trials, retried.codes, retried.problems) == (14, 3, (PROBLEM,))
    asked = server.asked("RetryTrials")[0].filter
    assert (list(asked.verdicts), asked.problem, asked.family, asked.policy) == ([7], PROBLEM, "attention_simt", 0)


def test_a_sweep_is_planned_without_being_started(connect, server):
    row = {"problem": PROBLEM, "variants": 78, "known": 22, "trials": 56}
    server.responses["PlanSweep"] = message(
        "PlanSweepResponse", device_id="cuda:0", rows=[row], estimate={"seconds": 71}
    )
    plan = connect(server).plan_sweep(f'shapes {{ problem: "{PROBLEM}" }}')
    assert plan.rows[0].known == 22
    assert plan.estimate.total_seconds() == 71
    assert not server.asked("Sweep")


def test_operations_of_one_problem(connect, server):
    server.responses["ListOperations"] = message("ListOperationsResponse")
    connect(server).operations(PROBLEM, active_only=True)
    asked = server.asked("ListOperations")[0]
    assert (asked.problem, asked.active_only, asked.parent) == (PROBLEM, True, "")


def test_operations_of_one_sweep(connect, server):
    server.responses["ListOperations"] = message("ListOperationsResponse")
    connect(server).operations(sweep="operations/7")
    assert server.asked("ListOperations")[0].parent == "operations/7"
