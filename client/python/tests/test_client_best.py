"""Client.best: the cache, the server, and what is left without one. Every test runs for Client and for aio.Client."""

from __future__ import annotations

import gc
import threading
import weakref

import grpc
import pytest
from fake import PROBLEM, answer, message, trial

import attune
from attune.plans.plan import Call

OTHER = "b1.h1.q128.d64.f16"


@pytest.fixture
def export(connect, server, tmp_path):
    """A snapshot file of what the server serves: PROBLEM on cuda:0."""
    path = tmp_path / "served.snapshot"
    server.responses["ListDevices"] = message("ListDevicesResponse", devices=[{"id": "cuda:0"}])
    incumbent = {"problem": answer().problem, "device_id": "cuda:0", "policy": 1}
    server.responses["ListIncumbents"] = message("ListIncumbentsResponse", incumbents=[incumbent])
    assert connect(server).export_snapshot(path) == (1, 1)
    server.requests.clear()
    return path


def test_an_answer_has_what_the_server_said(connect, server):
    best = connect(server).best(PROBLEM)
    assert best.provenance is attune.Provenance.EXACT
    assert best.variant.parameters == {"BLOCK_M": 64}
    assert best.timing.median_us == 41.2
    assert best.artifact is None


def test_the_question_reaches_the_server_whole(connect, server):
    connect(server).best(PROBLEM, device="cuda:1", policy="cold", acceptable=["exact", "tie"], artifact=True)
    (request,) = server.asked("GetBest")
    assert attune.Problem.from_message(request.problem) == attune.Problem.parse(PROBLEM)
    assert (request.device_id, request.policy, list(request.acceptable), request.include_artifact) == (
        "cuda:1",
        attune.Policy.COLD.value,
        [attune.Provenance.EXACT.value, attune.Provenance.TIE.value],
        True,
    )


def test_it_waits_for_code_that_is_being_compiled_beside_the_deadline(connect, server):
    server.responses["GetBest"] = answer(artifact_state=2)
    best = connect(server, deadline=5.0).best(PROBLEM, wait=2.5)
    assert best.artifact_state is attune.values.ArtifactState.COMPILING
    (request,) = server.asked("GetBest")
    assert request.wait.ToTimedelta().total_seconds() == 2.5
    assert connect(server, deadline=5.0).attempts(Call("GetBest", request, wait=2.5)).time_left() == 7.5


def test_what_is_being_compiled_is_asked_for_until_it_is_there(connect, server):
    server.responses["GetBest"] = answer(artifact_state=2)
    client = connect(server)
    client.best(PROBLEM)
    server.responses["GetBest"] = answer(artifact_state=3, artifact_reason="it does not compile")
    assert client.best(PROBLEM).artifact_reason == "it does not compile"
    client.best(PROBLEM)
    assert len(server.asked("GetBest")) == 2


def test_what_is_being_compiled_is_better_than_no_answer(connect, server):
    server.responses["GetBest"] = answer(artifact_state=2)
    client = connect(server)
    client.best(PROBLEM)
    server.stop()
    assert "the server's answer of" in client.best(PROBLEM).provenance_detail


def test_a_second_question_is_answered_from_the_cache(connect, server):
    client = connect(server)
    first = client.best(PROBLEM)
    assert client.best(attune.Problem.parse("f16.d64.q512.h8.b2")) == first, "another spelling of the same problem"
    assert len(server.asked("GetBest")) == 1


def test_devices_and_policies_are_different_questions(connect, server):
    client = connect(server)
    client.best(PROBLEM)
    client.best(PROBLEM, device="cuda:0")
    client.best(PROBLEM, policy=attune.Policy.COLD)
    assert len(server.asked("GetBest")) == 3


def test_an_answer_too_old_is_asked_again(connect, server, clock):
    client = connect(server, cache_ttl=60)
    client.best(PROBLEM)
    clock.seconds += 60
    client.best(PROBLEM)
    assert len(server.asked("GetBest")) == 2


def test_without_a_cache_every_question_is_asked(connect, server):
    client = connect(server, cache_capacity=0)
    client.best(PROBLEM)
    client.best(PROBLEM)
    assert len(server.asked("GetBest")) == 2


def test_clearing_the_cache_forgets(connect, server):
    client = connect(server)
    client.best(PROBLEM)
    client.clear_cache()
    client.best(PROBLEM)
    assert len(server.asked("GetBest")) == 2


def test_an_answer_to_a_narrow_question_is_not_given_to_everybody(connect, server):
    client = connect(server)
    client.best(PROBLEM, acceptable=[attune.Provenance.EXACT])
    client.best(PROBLEM)
    assert len(server.asked("GetBest")) == 2


def test_a_cached_answer_that_is_not_acceptable_is_asked_again(connect, server):
    server.responses["GetBest"] = answer(provenance=attune.Provenance.HEURISTIC.value)
    client = connect(server)
    client.best(PROBLEM)
    client.best(PROBLEM, acceptable=["EXACT"])
    assert len(server.asked("GetBest")) == 2


def test_the_artifact_that_the_cached_answer_lacks_is_fetched(connect, server):
    client = connect(server)
    client.best(PROBLEM)
    server.responses["GetBest"] = answer(artifact=b"cubin")
    assert client.best(PROBLEM, artifact=True).artifact == b"cubin"
    assert client.best(PROBLEM).artifact == b"cubin", "which then serves for both"
    assert len(server.asked("GetBest")) == 2


def test_errors_are_not_cached(connect, server):
    client = connect(server)
    server.fail_next(1, grpc.StatusCode.NOT_FOUND)
    with pytest.raises(attune.NotFound):
        client.best(PROBLEM)
    assert client.best(PROBLEM).trial == "trials/1"


def test_a_roll_back_outdates_what_is_cached(connect, server):
    incumbent = {"problem": answer().problem, "trial": {"name": "trials/1", "problem": answer().problem}}
    server.responses["RollBack"] = message("Incumbent", **incumbent)
    client = connect(server)
    client.best(PROBLEM)
    client.roll_back(PROBLEM)
    client.best(PROBLEM)
    assert len(server.asked("GetBest")) == 2


def test_a_tuned_winner_replaces_the_cached_answer(connect, server):
    client = connect(server)
    client.best(PROBLEM)
    client.tune(PROBLEM).result()
    server.responses["GetBest"] = answer(trial="trials/2")
    assert client.best(PROBLEM).trial == "trials/2"


def test_an_expired_answer_is_better_than_none(connect, server, clock):
    client = connect(server, cache_ttl=60)
    client.best(PROBLEM)
    clock.seconds += 61
    server.fail_next(4, grpc.StatusCode.UNAVAILABLE)
    assert client.best(PROBLEM).provenance_detail == "the server's answer of 2026-11-18 11:23 UTC"


def test_without_anything_kept_the_error_is_unreachable(connect, server):
    server.stop()
    with pytest.raises(attune.Unreachable, match="no server reached at unix:"):
        connect(server).best(PROBLEM)


def test_an_error_of_the_server_is_no_reason_to_fall_back(connect, server, export):
    server.fail_next(1, grpc.StatusCode.NOT_FOUND)
    with pytest.raises(attune.NotFound):
        connect(server, snapshot=export).best(PROBLEM)


def test_answers_from_the_snapshot_when_the_server_is_gone(connect, server, export):
    server.stop()
    best = connect(server, snapshot=export).best(PROBLEM)
    assert best.provenance is attune.Provenance.EXACT
    assert best.provenance_detail.startswith("from the snapshot of 20")


def test_a_snapshot_without_the_answer_is_named(connect, server, export):
    server.stop()
    with pytest.raises(attune.Unreachable, match=rf"served.snapshot' has no answer for {OTHER}"):
        connect(server, snapshot=export).best(OTHER)


def test_a_snapshots_answer_that_is_not_acceptable_is_none(connect, server, export):
    server.stop()
    with pytest.raises(attune.Unreachable, match="has no answer for"):
        connect(server, snapshot=export).best(PROBLEM, acceptable=["TIE"])


def test_a_damaged_snapshot_is_named_beside_the_servers_error(connect, server, export):
    export.write_bytes(b"junk")
    server.stop()
    with pytest.raises(attune.Unreachable, match=r"no server reached .*; snapshot '.*' is damaged"):
        connect(server, snapshot=export).best(PROBLEM)


def test_a_missing_snapshot_is_named_beside_the_servers_error(connect, server, tmp_path):
    server.fail_next(4, grpc.StatusCode.UNAVAILABLE, "gone")
    with pytest.raises(attune.Unreachable, match=r"gone; there is no snapshot '.*/none'$"):
        connect(server, snapshot=tmp_path / "none").best(PROBLEM)


@pytest.mark.parametrize("damaged", [False, True])
def test_what_it_remembers_of_an_error_holds_on_to_nothing_of_the_call(connect, server, export, damaged):
    class Held:
        pass

    def ask():
        held = Held()
        try:
            client.best(PROBLEM)
        except attune.Unreachable:
            assert damaged
        return weakref.ref(held)

    if damaged:
        export.write_bytes(b"junk")
    server.stop()
    client = connect(server, snapshot=export)
    held = ask()
    gc.collect()
    assert held() is None


def test_after_a_failure_it_does_not_try_the_server_at_each_question(connect, server, export, clock):
    client = connect(server, snapshot=export, unreachable_hold=2.0)
    server.fail_next(4, grpc.StatusCode.UNAVAILABLE)
    client.best(PROBLEM)
    client.best(PROBLEM)
    assert len(server.asked("GetBest")) == 4, "one call of four attempts"
    with pytest.raises(attune.Unreachable):
        client.best(OTHER)
    clock.seconds += 2
    assert client.best(PROBLEM).provenance_detail == "", "the server's own answer again"


def test_many_threads_may_ask_at_once(server):
    with attune.Client(server.address, cache_capacity=4) as client:
        problems = [f"b{batch}.h8.q512.d64.f16" for batch in range(1, 9)]
        answers = []

        def ask():
            for problem in problems * 20:
                answers.append(client.best(problem).trial)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == ["trials/1"] * (8 * 8 * 20)


def by_objective(request):
    """As a server whose tuning has measured energy, but for no energy-delay product."""
    if request.objective != 2:
        return answer()
    return answer(objective=2, trial="trials/2", variant={"text": "attention_simt:BLOCK_M=32"})


def test_the_best_by_an_objective_is_kept_apart(connect, server):
    server.responses["GetBest"] = by_objective
    client = connect(server)
    least = client.best(PROBLEM, objective="energy")
    assert (least.trial, least.objective) == ("trials/2", attune.values.Objective.ENERGY)
    assert client.best(PROBLEM).trial == "trials/1"
    assert client.best(PROBLEM, objective="energy") is least
    assert client.best(PROBLEM, objective="time").objective is attune.values.Objective.UNSPECIFIED
    assert [request.objective for request in server.asked("GetBest")] == [2, 0]
    with pytest.raises(attune.InvalidArgument, match="objective is 'watts'; it must be one of TIME, ENERGY, EDP"):
        client.best(PROBLEM, objective="watts")


def test_a_snapshot_has_the_best_by_an_objective_or_says_that_it_has_none(connect, server, tmp_path):
    path = tmp_path / "served.snapshot"
    server.responses["GetBest"] = by_objective
    server.responses["ListDevices"] = message("ListDevicesResponse", devices=[{"id": "cuda:0"}])
    incumbent = {"problem": answer().problem, "device_id": "cuda:0", "policy": 1, "trial": trial()}
    incumbent["alternatives"] = [{"objective": 2, "trial": trial("trials/2")}, {"objective": 3}]
    server.responses["ListIncumbents"] = message("ListIncumbentsResponse", incumbents=[incumbent])
    client = connect(server)
    (served,) = client.incumbents()
    least, product = served.alternatives
    assert (least.objective, least.trial.name) == (attune.values.Objective.ENERGY, "trials/2")
    assert (product.objective, product.trial) == (attune.values.Objective.EDP, None)
    assert client.export_snapshot(path) == (2, 1)
    assert [request.objective for request in server.asked("GetBest")] == [2, 0], "the fastest is last"
    server.stop()
    away = connect(server, snapshot=path)
    assert away.best(PROBLEM, objective="energy").trial == "trials/2"
    assert away.best(PROBLEM).trial == "trials/1"
    fastest = away.best(PROBLEM, objective="edp")
    assert fastest.trial == "trials/1"
    assert fastest.provenance_detail.endswith("chosen by time: it has none with the least energy-delay product")


def test_ranges_are_asked_for_anew(connect, server):
    server.responses["GetBest"] = answer(domains=[{"axis": 3, "low": 512, "high": 1023}])
    client = connect(server)
    client.best(PROBLEM)
    found = client.best(PROBLEM, domains=True)
    client.best(PROBLEM, domains=True)
    assert [request.include_domains for request in server.asked("GetBest")] == [False, True, True]
    assert found.at(attune.Problem.parse("b2.h8.q600.d64.f16")).provenance is attune.Provenance.NEAREST
