"""The Model Context Protocol server: its tools against a server with canned answers, in this process and over stdio."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import pytest
from fake import OPERATION, PROBLEM, VARIANT, message, operation, problem, trial, tuned

mcp = pytest.importorskip("mcp")

import attune.aio  # noqa: E402
import attune.mcp  # noqa: E402

TOOLS = {"devices", "preflight", "space", "best", "explain", "trials", "evaluate", "tune", "summary"} | {
    "submit",
    "iterations",
    "profile",
    "sanitize",
}
NAME = VARIANT["text"]


def run(server, use, **options):
    """What `use` comes to, given an MCP client of a server whose attune client talks to `server`."""

    async def connected():
        async with (
            attune.aio.Client(server.address, **options) as client,
            mcp.Client(attune.mcp.make_server(client)) as session,
        ):
            return await use(session)

    return asyncio.run(connected())


def call(server, name, progress=None, **arguments):
    """The structured answer of a tool."""
    result = run(server, lambda session: session.call_tool(name, arguments, progress_callback=progress))
    assert not result.is_error, result.content
    return result.structured_content


def test_every_tool_says_what_it_takes(server):
    listed = run(server, lambda session: session.list_tools()).tools
    assert {tool.name for tool in listed} == TOOLS
    for tool in listed:
        assert tool.description
        assert tool.annotations.read_only_hint == (
            tool.name not in ("tune", "evaluate", "submit", "profile", "sanitize")
        )
        assert tool.input_schema["type"] == "object"
    required = {tool.name: tool.input_schema.get("required", []) for tool in listed}
    assert required["evaluate"] == ["problem", "variant"]
    assert required["tune"] == ["problem"]
    assert server.requests == []


def test_the_best_variant_with_what_it_is_faster_than(server):
    response = server.responses["GetBest"]
    response.baselines.add(contender="torch-sdpa-flash", median_us=82.4, problem=problem())
    found = call(server, "best", problem=PROBLEM)
    assert (found["variant"], found["provenance"]) == (NAME, "EXACT")
    assert found["time"] == {"median_us": 41.2, "low_us": 40.9, "high_us": 41.5}
    assert found["speedup_over"] == {"torch-sdpa-flash": 2.0}


def test_an_evaluation_says_keep_or_revert_and_why(server):
    result = {
        "decision": 2,
        "reason": "1.4 % slower",
        "trial": trial(),
        "incumbent": trial("trials/2"),
        "speedup": 0.986,
    }
    server.responses["EvaluateVariant"] = operation(2)
    server.responses["WatchOperation"] = [operation(3, evaluate=result)]
    found = call(server, "evaluate", problem=PROBLEM, variant=NAME)
    assert (found["decision"], found["reason"], found["speedup"]) == ("REVERT", "1.4 % slower", 0.986)
    assert found["incumbent"]["trial"] == "trials/2"
    assert server.asked("EvaluateVariant")[0].variant.text == NAME


def test_a_kernel_of_ones_own_is_submitted_and_its_verdict_comes_with_the_compilers_words(server, tmp_path):
    kernel = tmp_path / "mine.cl"
    kernel.write_text("/* attune */")
    row = {
        "problem": PROBLEM,
        "decision": 2,
        "reason": "COMPILE_ERROR",
        "trial": trial(verdict=3, timing=None),
        "diagnostics": [{"path": "mine.cl", "line": 12, "text": "undeclared"}],
    }
    result = {"decision": 2, "reason": "COMPILE_ERROR", "submission": "submissions/7", "rows": [row]}
    server.responses["Submit"] = operation(2)
    server.responses["WatchOperation"] = [operation(3, submit=result)]
    found = call(server, "submit", kernel=str(kernel), problems=[PROBLEM], hypothesis="larger tiles", loop="tiles")
    assert (found["decision"], found["submission"]) == ("REVERT", "submissions/7")
    assert found["problems"][0]["compiler"] == ["mine.cl:12: undeclared"]
    (request,) = server.asked("Submit")
    assert (request.hypothesis, request.loop, request.base) == ("larger tiles", "tiles", "incumbent")
    stored = {**result, "submission": ""}  # a stored result does not say whose it is
    listed = [
        message("Submission", name=f"submissions/{number}", iteration=number, state=1, result=stored)
        for number in (2, 1)
    ]
    server.responses["ListSubmissions"] = message("ListSubmissionsResponse", submissions=listed)
    iterations = call(server, "iterations", loop="tiles")["iterations"]
    assert [one["iteration"] for one in iterations] == [1, 2]
    assert [one["submission"] for one in iterations] == ["submissions/1", "submissions/2"]


def test_counters_and_findings_are_short(server):
    kernel = {
        "entry": "attention",
        "counters": [{"name": "dram_throughput", "value": 0.91234567}],
        "stalls": [{"reason": reason, "share": 0.25} for reason in "abcd"],
    }
    result = {"trial": trial(profile={"kernels": [kernel]}), "bound": "DRAM, at 91 % of its peak"}
    server.responses["Profile"] = operation(2)
    server.responses["WatchOperation"] = [operation(3, profile=result)]
    found = call(server, "profile", subject=PROBLEM, variant=NAME)
    assert found["bound"] == "DRAM, at 91 % of its peak"
    assert found["kernels"][0]["counters"] == {"dram_throughput": 0.9123}
    assert len(found["kernels"][0]["stalls"]) == 3
    assert server.asked("Profile")[0].code.variant.text == NAME

    earlier = {"tool": 1, "errors": 1, "findings": ["Invalid read"]}
    runs = [earlier, {"tool": 2, "errors": 1, "findings": ["Race reported"]}]
    result = {"trial": trial(sanitizing={"runs": runs}), "reason": "racecheck reports 1 error"}
    server.responses["Sanitize"] = operation(2)
    server.responses["WatchOperation"] = [operation(3, sanitize=result)]
    found = call(server, "sanitize", subject="submissions/7", problem=PROBLEM, tools=["racecheck"])
    assert (found["clean"], found["findings"]) == (False, {"racecheck": ["Race reported"]})
    (request,) = server.asked("Sanitize")
    assert (request.code.submission, list(request.tools)) == ("submissions/7", [2])
    assert request.code.problem.seq_q == server.asked("Profile")[0].code.problem.seq_q > 0


def test_a_tuning_is_followed_with_progress(server):
    done = {"phase": 4, "trials_done": 3, "trials_total": 9, "best": trial()}
    server.responses["WatchOperation"] = [operation(2, progress=done), tuned()]
    seen = []

    async def progress(now, total, text):
        seen.append((now, total, text))

    found = call(server, "tune", progress, problem=PROBLEM, where=["BLOCK_M == 64"], max_time_s=2)
    assert found["promoted"]
    assert found["winner"]["variant"] == NAME
    assert (3, 9, "trials: 3 of 9 trials, best 41.2 us") in seen
    (request,) = server.asked("Tune")
    assert (request.strategy.kind, request.strategy.effort, request.strategy.max_time.seconds) == (3, 1, 2)
    assert list(request.where) == ["BLOCK_M == 64"]


def test_who_gives_up_has_the_operation_cancelled(server):
    left, started = threading.Event(), threading.Event()

    def watch(request):
        started.set()
        return [operation(2), left]

    server.responses["WatchOperation"] = watch
    server.responses["CancelOperation"] = operation(5)

    async def give_up(session):
        waiting = asyncio.create_task(session.call_tool("tune", {"problem": PROBLEM}))
        await asyncio.to_thread(started.wait, 60)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        for _ in range(600):
            if server.asked("CancelOperation"):
                return
            await asyncio.sleep(0.05)

    run(server, give_up)
    assert [request.name for request in server.asked("CancelOperation")] == [OPERATION]


def test_trials_come_fastest_first_without_what_agents_do_not_need(server):
    wrong = trial("trials/2", verdict=4, detail="row 63 is off by 0.25", timing=None)
    server.responses["ListTrials"] = message("ListTrialsResponse", trials=[trial(), wrong])
    found = call(server, "trials", problem=PROBLEM, verdicts=["OK", "WRONG_RESULT"])["trials"]
    assert found[1] == {
        "trial": "trials/2",
        "variant": NAME,
        "verdict": "WRONG_RESULT",
        "detail": "row 63 is off by 0.25",
    }
    (request,) = server.asked("ListTrials")
    assert (request.order, list(request.filter.verdicts), request.page_size) == (2, [1, 4], 20)


def test_what_bounds_a_trial_comes_with_advice_where_there_is_some(server):
    findings = [
        {"bound": 1, "text": "2 CTAs on 58 SMs", "advice": "raise KV_SPLITS from 1 to 8"},
        {"bound": 3, "text": "x"},
    ]
    server.responses["Explain"] = message("ExplainResponse", trial=trial(), findings=findings, tflops=1.5)
    found = call(server, "explain", problem="trials/1")
    assert found["findings"][0] == {
        "bound": "GRID",
        "text": "2 CTAs on 58 SMs",
        "advice": "raise KV_SPLITS from 1 to 8",
    }
    assert "advice" not in found["findings"][1]
    call(server, "explain", problem="submissions/7", submission_problem=PROBLEM)
    assert server.asked("Explain")[-1].submission_problem.seq_q > 0


def test_an_error_names_what_is_wrong_and_the_server_goes_on(server):
    async def use(session):
        wrong = await session.call_tool("best", {"problem": "b2.h8"})
        missing = await session.call_tool("explain", {"problem": PROBLEM})
        bounds = await session.call_tool("space", {"problem": PROBLEM, "limit": 0})
        return wrong, missing, bounds, await session.call_tool("best", {"problem": PROBLEM})

    wrong, missing, bounds, right = run(server, use)
    assert all(result.is_error for result in (wrong, missing, bounds))
    assert "b2.h8" in wrong.content[0].text
    assert "Explain has nothing" in missing.content[0].text
    assert "limit" in bounds.content[0].text
    assert not right.is_error


def test_the_prompt_states_the_rules_for_a_problem(server):
    found = run(server, lambda session: session.get_prompt("optimise", {"problem": PROBLEM}))
    assert PROBLEM in found.messages[0].content.text
    assert "one change, one verdict" in found.messages[0].content.text


def test_over_stdio_as_an_editor_starts_it(server):
    started = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "attune.mcp", "--server", server.address], env=dict(os.environ)
    )

    async def use():
        async with mcp.Client(started) as session:
            return await session.call_tool("best", {"problem": PROBLEM})

    assert asyncio.run(use()).structured_content["variant"] == NAME
