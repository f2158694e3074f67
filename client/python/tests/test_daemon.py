"""A real daemon, tuning on the CPU: ATTUNE_BUILD is the build directory that has it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading

import grpc
import harness
import pytest

import attune
import attune.aio
from attune.values import Decision, Outcome, Phase, State

PROBLEM = "b1.h1.q16.d32.f16"
FAMILY = "attention_opencl"
SEARCH = {"strategy": "random", "max_trials": 2, "seed": 1}  # the same two variants each time


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    if not harness.ATTUNED.exists():
        pytest.fail(f"'{harness.ATTUNED}' is not there; ATTUNE_BUILD must name a build directory")
    daemon = harness.Daemon(tmp_path_factory.mktemp("daemon")).start()
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def client(daemon):
    with attune.Client(daemon.address, deadline=60.0) as client:
        yield client


@pytest.fixture(scope="module")
def tuned(client):
    """The progress and the result of tuning PROBLEM with two trials."""
    tuning = client.tune(PROBLEM, **SEARCH)
    return list(tuning), tuning.result()


@pytest.fixture
def served(client, tuned):
    """The incumbent of PROBLEM: whichever of the tuned variants the last job found faster."""
    (incumbent,) = client.incumbents(PROBLEM)
    return incumbent


def test_a_tuning_is_followed_to_its_result(tuned):
    progress, result = tuned
    assert progress[-1].phase is Phase.DONE
    assert progress[-1].trials_done == 2
    assert result.promoted
    assert result.winner.verdict is attune.Verdict.OK
    assert result.incumbent.trial.name == result.winner.name


def test_the_incumbent_is_the_best_answer(client, served):
    client.clear_cache()
    best = client.best(PROBLEM, artifact=True)
    assert best.provenance in (attune.Provenance.EXACT, attune.Provenance.TIE)
    assert best.trial == served.trial.name
    assert best.variant.family == FAMILY
    assert best.artifact
    assert best.recipe.launches[best.recipe.main_launch].entry
    assert best.timing.low_us <= best.timing.median_us <= best.timing.high_us


def test_a_problem_never_tuned_has_an_answer_too(client, tuned):
    assert client.best("b1.h1.q32.d32.f16").provenance in (attune.Provenance.NEAREST, attune.Provenance.HEURISTIC)


def test_what_is_not_acceptable_is_not_found(client, tuned):
    with pytest.raises(attune.NotFound) as caught:
        client.best("b1.h1.q32.d32.f16", acceptable=["EXACT"])
    assert caught.value.reason == "NOT_FOUND"
    assert caught.value.metadata["method"] == "GetBest"


def test_trials_are_listed_and_one_has_its_recipe(client, tuned):
    trials = client.trials(PROBLEM, order="fastest", verdicts=["OK"])
    assert 1 <= len(trials) <= 2
    assert trials[0].recipe is None
    whole = client.trial(trials[0].name)
    assert whole.variant == trials[0].variant
    assert whole.recipe.launches


def test_a_trial_is_explained(client, served):
    by_problem, by_trial = client.explain(PROBLEM), client.explain(served.trial)
    assert by_problem.trial.name == by_trial.trial.name == served.trial.name
    assert by_problem.findings[0].text


def test_incumbents_keep_their_history(client, served):
    assert served in client.incumbents(PROBLEM, history=True)


def test_nothing_can_be_rolled_back_where_nothing_is_served(client):
    with pytest.raises(attune.FailedPrecondition, match="has no incumbent to roll back"):
        client.roll_back("b1.h1.q64.d32.f16", why="a test")


def test_a_baseline_stands_beside_the_answer(client, tuned):
    recorded = client.record_baseline(PROBLEM, "torch-sdpa-math", 47.5, 47.0, 48.0, note="by hand")
    assert recorded in client.baselines(PROBLEM)
    client.clear_cache()
    (baseline,) = client.best(PROBLEM).baselines
    assert (baseline.contender, baseline.median_us, baseline.note) == ("torch-sdpa-math", 47.5, "by hand")


def test_the_incumbent_evaluated_against_itself_is_kept(client, served):
    evaluation = client.evaluate(PROBLEM, served.trial.variant).result()
    assert evaluation.decision is Decision.KEEP
    assert "incumbent" in evaluation.reason


def test_a_sweep_ends_with_a_report(client, tuned):
    plan = f'title: "nightly" shapes {{ problem: "{PROBLEM}" }} budget {{ trials_per_problem: 1 }}'
    report = client.sweep(plan).result()
    assert report.title == "nightly"
    assert report.rows[0].problem == PROBLEM
    assert report.rows[0].outcome is not Outcome.FAILED


def test_the_same_request_starts_one_operation(client, tuned):
    first, second = (client.tune(PROBLEM, **SEARCH, request_id="same") for _ in range(2))
    assert first.name == second.name
    first.result()


def test_a_tuning_is_cancelled_while_others_follow_it(client):
    tuning = client.tune("b1.h1.q48.d32.f16")
    follower = client.follow(tuning.name)
    next(iter(follower))
    tuning.cancel()
    with pytest.raises(attune.Cancelled):
        follower.result()
    assert client.operation(tuning.name).state is State.CANCELLED
    assert tuning.name in [operation.name for operation in client.operations()]


def test_a_daemon_killed_and_started_again_is_followed_on(tmp_path):
    daemon = harness.Daemon(tmp_path).start()
    with attune.Client(daemon.address) as client:
        tuning = client.tune(PROBLEM, **SEARCH)
        progress = iter(tuning)
        next(progress)
        daemon.kill()
        restart = threading.Thread(target=daemon.start)
        restart.start()
        assert list(progress)[-1].phase is Phase.DONE
        assert tuning.result().promoted
    restart.join()
    daemon.stop()


def test_preflight_counts_what_would_be_tried(client, tuned):
    preflight = client.preflight(PROBLEM, families=[FAMILY], variants=True)
    (family,) = preflight.families
    assert family.feasible
    assert family.variants == len(preflight.variants) > 0
    (some,) = client.preflight(PROBLEM, families=[FAMILY], variants=True, where=["BLOCK_N == 32"]).families
    assert 0 < some.variants < family.variants
    assert "BLOCK_N == 32" in [removed.constraint for removed in some.removed]
    assert client.preflight("b1.h8.q512.d64.f16", device="profile:l4").device.compute_units == 58


def test_an_agent_reads_explains_and_evaluates_over_stdio(daemon, served):
    mcp = pytest.importorskip("mcp")
    started = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "attune.mcp", "--server", daemon.address], env=dict(os.environ)
    )

    async def loop():
        async with mcp.Client(started) as agent:
            best = (await agent.call_tool("best", {"problem": PROBLEM})).structured_content
            explained = await agent.call_tool("explain", {"problem": best["trial"]})
            evaluated = await agent.call_tool("evaluate", {"problem": PROBLEM, "variant": best["variant"]})
            return best, explained.structured_content, evaluated.structured_content

    best, explained, evaluated = asyncio.run(loop())
    assert best["variant"] == served.trial.variant.text
    assert best["time"]["median_us"] > 0
    assert explained["findings"][0]["text"]
    assert evaluated["decision"] == "KEEP", "the incumbent itself"


def test_the_host_is_described(client):
    host = client.host()
    assert client.devices()[0] == host.devices[0]
    assert host.devices[0].id == "opencl:0"
    assert host.server_version
    assert FAMILY in [family.name for family in client.families()]


def test_health_tells_answering_from_tuning(daemon):
    def serving(service):
        with grpc.insecure_channel(daemon.address) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            return check(b"\x0a" + bytes([len(service)]) + service.encode(), timeout=60) == b"\x08\x01"

    assert serving("")
    assert serving("attune.v1.AttuneService")
    assert serving("attune.tuning")
    with pytest.raises(grpc.RpcError, match="NOT_FOUND"):
        serving("attune.nothing")


def test_an_error_says_what_there_is(client):
    with pytest.raises(attune.NotFound, match=f"family 'warp' is unknown; available: .*{FAMILY}") as caught:
        client.tune(PROBLEM, families=["warp"])
    assert caught.value.reason == "UNKNOWN_FAMILY"


@pytest.mark.parametrize(
    "text",
    [
        *("b2.h8.kvh3.q5.d64.f16", "b2.h8.q5.d64.f32", "b2.h8.q5.d64.f16.softcap0", "b2..h8"),
        *("b2.h8.q5.d64.f16.varlen.bhsd", "b2.h8.q5.d64.f16.page65537", "b65536.h1.q65536.d1.f16.varlen"),
    ],
)
def test_a_problem_is_refused_in_the_words_of_the_command_line(daemon, text):
    with pytest.raises(attune.InvalidArgument) as caught:
        attune.Problem.parse(text)
    assert caught.value.message in daemon.attune("best", text, check=False).stderr


@pytest.mark.parametrize("artifacts", [True, False])
def test_the_command_line_reads_a_snapshot_from_here(daemon, client, served, tmp_path, artifacts):
    assert client.export_snapshot(tmp_path / "here", artifacts=artifacts).answers >= 1
    (answer,) = daemon.json("best", PROBLEM, "--snapshot", str(tmp_path / "here"))
    assert answer["variant"] == served.trial.variant.text
    assert "from the snapshot of" in json.dumps(answer)


def test_a_snapshot_of_the_command_line_is_read_here(daemon, client, served, tmp_path):
    client.clear_cache()
    daemon.attune("export", str(tmp_path / "there"))
    nobody = attune.Client(f"unix:{tmp_path}/nobody.sock", snapshot=tmp_path / "there")
    best = nobody.best(PROBLEM, artifact=True)
    assert best.variant == served.trial.variant
    assert best.artifact == client.best(PROBLEM, artifact=True).artifact
    assert "from the snapshot of" in best.provenance_detail


def test_the_async_client_speaks_to_it_as_well(daemon, tuned):
    async def ask():
        async with attune.aio.Client(daemon.address) as client:
            tuning = await client.tune(PROBLEM, **SEARCH)
            phases = [progress.phase async for progress in tuning]
            return phases, await tuning.result(), await asyncio.gather(*(client.best(PROBLEM) for _ in range(8)))

    phases, result, answers = asyncio.run(ask())
    assert phases[-1] is Phase.DONE
    assert {answer.trial for answer in answers} == {result.incumbent.trial.name}
