"""A Model Context Protocol server over stdio: the optimisation loop for coding agents (docs/mcp.md).

    attune-mcp [--server HOST:PORT] [--token-file FILE]

Needs the extra [mcp]. Tools are thin: each makes one or two calls of attune.aio.Client and answers with a few lines of
JSON. Nothing but protocol messages goes to standard output.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

import anyio

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations
except ImportError as error:
    raise ImportError("attune.mcp needs the extra [mcp]: pip install 'attune-attention[mcp]'") from error
from pydantic import Field

import attune.aio
from attune.values import (
    Effort,
    Explanation,
    Profile,
    Progress,
    SanitizerTool,
    Strategy,
    SubmitResult,
    Timing,
    Trial,
    Verdict,
)

P = ParamSpec("P")
R = TypeVar("R")

INSTRUCTIONS = """\
attune finds, checks and times attention kernels on the GPU of the server's host. A problem is one operation at one \
shape, such as b2.h8.q512.d64.f16.causal: batch, query heads, query length, head dimension, type and options; \
.kvh<heads> and .kv<length> where keys differ. A variant is a kernel family with a value for each parameter, \
family:NAME=VALUE,... Times are medians in microseconds on the server's device; only variants with right results are \
timed.
"""

LOOP = """\
Make attention on {problem} faster. Rules of the loop:
1. Begin with `preflight` and `best`: what is served now, and how fast it is; `explain`, once something was tuned, says
   what bounds it.
2. State one hypothesis before each step, and change one thing: one change, one verdict.
3. Test it with `evaluate` (one variant), `tune` with `where` (a part of the space) or `submit` (a kernel of your own,
   always with the same `loop`). Keep what is faster; take back what is not: a REVERT is a result, too, say why.
4. Look at the figures before the next step: `ctas` over `sms` (fewer than 4: try more splits; `ctas_per_sm` is how many
   are resident at once), spills (none), registers and shared memory against occupancy. Where they do not say why,
   `profile` it: what bounds it decides what to try (CUDA devices alone, as `sanitize`). Every fifth iteration of a loop
   that would be kept runs under compute-sanitizer, and findings revert it; `sanitize` the iterations before it then,
   they may have them too.
5. Do not try again what `trials` and `iterations` already answer. Stop when three hypotheses in a row changed nothing.
Finish with a table: step, hypothesis, change, time, speed-up, verdict.
"""

ProblemText = Annotated[str, Field(description="Such as b2.h8.q512.d64.f16.causal")]
DeviceName = Annotated[str, Field(description="A card's id or its class, such as l4; empty: the server's first")]
Subject = Annotated[
    str, Field(description="A problem, for its best variant; a trial, trials/123; or a submission, submissions/7")
]
TriedVariant = Annotated[str, Field(description="Of a problem, a variant that was tried; empty: what is served")]
OneOfProblems = Annotated[str, Field(description="Of a submission of several problems, which")]
Conditions = Annotated[
    list[str] | None,
    Field(description="Only variants of which all are true, such as 'BLOCK_M >= 64 && KV_SPLITS == 1'"),
]
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WORKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


def timing_dict(timing: Timing | None) -> dict[str, Any] | None:
    if timing is None or timing.median_us <= 0:
        return None
    known = {
        "median_us": round(timing.median_us, 3),
        "low_us": round(timing.low_us, 3),
        "high_us": round(timing.high_us, 3),
    }
    doubts = [word for word, true in (("not settled", not timing.settled), ("contended", timing.contended)) if true]
    return {**known, "doubts": doubts} if doubts else known


def trial_dict(trial: Trial | None) -> dict[str, Any] | None:
    """What decides about a trial: not its recipe, its dependencies and its dates."""
    if trial is None:
        return None
    found: dict[str, Any] = {"trial": trial.name, "variant": trial.variant.text, "verdict": trial.verdict.name}
    if trial.detail:
        found["detail"] = trial.detail
    if timing := timing_dict(trial.timing):
        found["time"] = timing
    if trial.geometry is not None and trial.geometry.ctas:
        geometry = trial.geometry
        found["ctas"] = geometry.ctas
        found["sms"] = geometry.sm_count
        found["ctas_per_sm"] = geometry.ctas_per_sm
        found["occupancy"] = round(geometry.occupancy, 3)
    if trial.resources is not None and trial.resources.registers:
        resources = trial.resources
        found["registers"] = resources.registers
        found["spill_bytes"] = resources.spill_bytes
        found["shared_bytes"] = resources.shared_bytes
    if trial.accuracy is not None and trial.accuracy.cases:
        found["max_abs_error"] = trial.accuracy.max_abs_error
    return found


def profile_dict(profile: Profile | None) -> list[dict[str, Any]]:
    """The counters of each kernel, and its largest stalls."""
    return [
        {
            "kernel": kernel.entry,
            "counters": {name: round(value, 4) for name, value in kernel.counters.items()},
            "stalls": {reason: round(share, 3) for reason, share in list(kernel.stalls.items())[:3]},
        }
        for kernel in (profile.kernels if profile is not None else ())
    ]


def explanation_dict(explanation: Explanation) -> dict[str, Any]:
    findings = [
        {"bound": finding.bound.name, "text": finding.text} | ({"advice": finding.advice} if finding.advice else {})
        for finding in explanation.findings
    ]
    reached = {"tflops": round(explanation.tflops, 3), "gbs": round(explanation.gbs, 3)}
    return {"trial": trial_dict(explanation.trial), "findings": findings, **reached}


def submitted_dict(result: SubmitResult) -> dict[str, Any]:
    """A verdict, with what speaks for it: of each problem its times, broken gates and the compiler's words."""
    rows = []
    for row in result.rows:
        shown: dict[str, Any] = {"problem": row.problem, "decision": row.decision.name, "reason": row.reason}
        if row.speedup > 0:
            shown["speedup"] = round(row.speedup, 4)
        shown["trial"] = trial_dict(row.trial)
        if row.base_trial is not None:
            shown["base"] = {"name": row.base, "time": timing_dict(row.base_trial.timing)}
        if row.gates:
            shown["gates"] = [gate.text for gate in row.gates]
        if row.diagnostics:
            shown["compiler"] = [f"{one.path}:{one.line}: {one.text}" for one in row.diagnostics[:10]]
        rows.append(shown)
    return {
        "decision": result.decision.name,
        "reason": result.reason,
        "submission": result.submission,
        "problems": rows,
    }


def progress_line(progress: Progress) -> str:
    best = f", best {progress.best.timing.median_us:.4g} us" if progress.best and progress.best.timing else ""
    waits = f", waits for {progress.waits_for}" if progress.waits_for else ""
    return f"{progress.phase.name.lower()}: {progress.trials_done} of {progress.trials_total} trials{best}{waits}"


async def followed(following: attune.aio.Following[R], context: Context) -> R:
    """The operation's result, its progress reported; when the caller gives up, the operation is cancelled."""
    try:
        async for progress in following:
            total = progress.trials_total or None
            await context.report_progress(progress.trials_done, total, progress_line(progress))
        return await following.result()
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await following.cancel()
        raise


def told(tool: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """The tool, whose errors reach the agent in attune's own words; of any other exception the SDK tells nothing."""

    @functools.wraps(tool)
    async def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await tool(*args, **kwargs)
        except attune.AttuneError as error:
            raise ToolError(str(error)) from error

    return wrapped


def make_server(client: attune.aio.Client) -> MCPServer:
    """The server, whose tools use `client`; closing it stays with the caller."""
    server = MCPServer("attune", instructions=INSTRUCTIONS, version=version("attune-attention"))

    @server.tool(annotations=READS)
    @told
    async def devices() -> dict[str, Any]:
        """The server's devices and their limits, and its kernel families."""
        host = await client.host()
        return {
            "devices": [
                {
                    "id": device.id,
                    "model": device.model,
                    "backend": device.backend.name,
                    "sms": device.compute_units,
                    "shared_bytes_per_block": device.shared_bytes_per_block,
                    "registers_per_sm": device.registers_per_sm,
                    "l2_bytes": device.l2_bytes,
                    "memory_bandwidth_gbs": device.memory_bandwidth_gbs,
                }
                for device in host.devices
            ],
            "families": [
                {"name": family.name, "description": family.description} for family in await client.families()
            ],
        }

    @server.tool(annotations=READS)
    @told
    async def preflight(problem: ProblemText, device: DeviceName = "", where: Conditions = None) -> dict[str, Any]:
        """How many variants of a problem there are to try, by family; which rules leave some out. Starts nothing."""
        space = await client.preflight(problem, device=device, where=where or ())
        return {
            "device": space.device.id,
            "families": [
                {"family": family.name, "variants": family.variants, "tried_already": family.known}
                | ({} if family.feasible else {"not_feasible": family.reason})
                | {"left_out": {removed.constraint: removed.removed for removed in family.removed}}
                for family in space.families
            ],
            "estimate_s": space.estimate.total_seconds() if space.estimate else None,
            "warnings": list(space.warnings),
        }

    @server.tool(annotations=READS)
    @told
    async def space(
        problem: ProblemText,
        where: Conditions = None,
        device: DeviceName = "",
        limit: Annotated[int, Field(ge=1, le=1000, description="List at most this many")] = 50,
    ) -> dict[str, Any]:
        """Lists variants of a problem, to be narrowed by conditions on parameters."""
        listed = await client.preflight(problem, device=device, where=where or (), variants=True)
        return {"count": len(listed.variants), "variants": [one.text for one in listed.variants[:limit]]}

    @server.tool(annotations=READS)
    @told
    async def best(problem: ProblemText, device: DeviceName = "") -> dict[str, Any]:
        """The best known variant, its time, and how far that can be relied on (provenance: EXACT and TIE are tuned)."""
        client.clear_cache()
        answer = await client.best(problem, device=device)
        return {
            "variant": answer.variant.text,
            "provenance": answer.provenance.name,
            "provenance_detail": answer.provenance_detail,
            "time": timing_dict(answer.timing),
            "trial": answer.trial,
            "ties": [variant.text for variant in answer.ties],
            "pinned": answer.pinned,
            "speedup_over": {
                baseline.contender: round(baseline.median_us / answer.timing.median_us, 3)
                for baseline in answer.baselines
                if answer.timing is not None and answer.timing.median_us > 0
            },
        }

    @server.tool(annotations=READS)
    @told
    async def explain(problem: Subject, submission_problem: OneOfProblems = "") -> dict[str, Any]:
        """What bounds a problem's best variant, a trial or a submission, with figures; what to change next, if trials
        agree."""
        return explanation_dict(await client.explain(problem, problem=submission_problem or None))

    @server.tool(annotations=READS)
    @told
    async def trials(
        problem: ProblemText,
        family: Annotated[str, Field(description="Only this family's; empty: all")] = "",
        verdicts: Annotated[
            list[str] | None, Field(description=f"Of: {', '.join(v.name for v in Verdict if v)}")
        ] = None,
        order: Literal["fastest", "newest"] = "fastest",
        limit: Annotated[int, Field(ge=1, le=200)] = 20,
    ) -> dict[str, Any]:
        """What was tried for a problem and how it ended."""
        listed = await client.trials(problem, family=family, verdicts=verdicts or (), order=order, limit=limit)
        return {"trials": [trial_dict(trial) for trial in listed]}

    @server.tool(annotations=WORKS)
    @told
    async def evaluate(
        problem: ProblemText,
        variant: Annotated[str, Field(description="family:NAME=VALUE,... with every parameter")],
        context: Context,
        device: DeviceName = "",
    ) -> dict[str, Any]:
        """Compiles, checks and times one variant beside the one that is served: KEEP (2 % faster) or REVERT, why."""
        result = await followed(await client.evaluate(problem, variant, device=device), context)
        return {
            "decision": result.decision.name,
            "reason": result.reason,
            "speedup": round(result.speedup, 4),
            "trial": trial_dict(result.trial),
            "incumbent": trial_dict(result.incumbent),
        }

    @server.tool(annotations=WORKS)
    @told
    async def tune(
        problem: ProblemText,
        context: Context,
        effort: Annotated[
            Literal["quick", "standard", "full", "exhaustive"],
            Field(
                description="quick: at most 24 trials; standard: a twentieth of the space, or 96 where that is more; "
                "full: a quarter, or 96; exhaustive: every variant"
            ),
        ] = "quick",
        where: Conditions = None,
        require: Annotated[list[str] | None, Field(description="Variants that are tried in any case")] = None,
        seed_from: Annotated[
            list[str] | None, Field(description="Problems whose best variants are tried first")
        ] = None,
        max_time_s: Annotated[float | None, Field(gt=0, description="Ends the search after this long")] = None,
        device: DeviceName = "",
    ) -> dict[str, Any]:
        """Searches the fastest variant of a problem; what it finds is served if it beats what is served now."""
        tuning = await client.tune(
            problem,
            device=device,
            strategy=Strategy.GUIDED,
            effort=Effort.of(effort),
            max_time=max_time_s,
            where=where or (),
            require=require or (),
            seed_from=seed_from or (),
        )
        result = await followed(tuning, context)
        return {
            "promoted": result.promoted,
            "decision": result.decision,
            "winner": trial_dict(result.winner),
            "play_off": [trial_dict(trial) for trial in result.play_off[:5]],
            "verdicts": {verdict.name: count for verdict, count in tuning.operation.progress.verdicts.items()},
            "floor_us": round(result.floor_us, 3),
        }

    @server.tool(annotations=WORKS)
    @told
    async def submit(
        kernel: Annotated[
            str, Field(description="On this machine: a folder with family.textproto, or a .cu or .cl file")
        ],
        problems: Annotated[list[str], Field(min_length=1, max_length=8, description="Such as b1.h2.q128.d64.f16")],
        hypothesis: Annotated[str, Field(description="What the one change is expected to do, and why")],
        context: Context,
        loop: Annotated[str, Field(description="The name of the loop that this is an iteration of")] = "",
        base: Annotated[
            str, Field(description="incumbent; previous: the loop's last that was kept; or submissions/7")
        ] = "incumbent",
        device: DeviceName = "",
    ) -> dict[str, Any]:
        """Compiles, checks and times a kernel of your own against a base: KEEP or REVERT. What is served stays."""
        submitting = await client.submit(kernel, problems, device=device, hypothesis=hypothesis, base=base, loop=loop)
        result = await followed(submitting, context)
        return submitted_dict(result)

    @server.tool(annotations=WORKS)
    @told
    async def profile(
        subject: Subject,
        context: Context,
        variant: TriedVariant = "",
        problem: OneOfProblems = "",
        device: DeviceName = "",
    ) -> dict[str, Any]:
        """Nsight Compute's counters of a subject, and what bounds it; once begun, 2 min at most by default."""
        result = await followed(await client.profile(subject, variant, problem=problem or None, device=device), context)
        return {"trial": result.trial.name, "bound": result.bound, "kernels": profile_dict(result.trial.profile)}

    @server.tool(annotations=WORKS)
    @told
    async def sanitize(
        subject: Subject,
        context: Context,
        variant: TriedVariant = "",
        problem: OneOfProblems = "",
        tools: Annotated[
            list[Literal["memcheck", "racecheck", "synccheck", "initcheck"]] | None,
            Field(description="Of compute-sanitizer; by default all four"),
        ] = None,
        device: DeviceName = "",
    ) -> dict[str, Any]:
        """Runs a variant or submission under compute-sanitizer: bad accesses, races, barriers, unwritten memory."""
        sanitizing = await client.sanitize(subject, variant, problem=problem or None, tools=tools or (), device=device)
        result = await followed(sanitizing, context)
        runs = result.trial.sanitizing.runs if result.trial.sanitizing is not None else ()
        asked = {SanitizerTool.of(tool) for tool in tools or SanitizerTool}  # others' runs are of other calls
        return {
            "trial": result.trial.name,
            "clean": result.clean,
            "reason": result.reason,
            "findings": {
                run.tool.name.lower(): list(run.findings) for run in runs if run.findings and run.tool in asked
            },
        }

    @server.tool(annotations=READS)
    @told
    async def iterations(
        loop: Annotated[str, Field(description="A loop's name; empty: all submissions")] = "",
    ) -> dict[str, Any]:
        """What was submitted in a loop, oldest first: hypothesis, verdict, times and speed-ups of each iteration."""
        listed = await client.submissions(loop=loop)
        return {
            "iterations": [
                (submitted_dict(one.result) if one.result is not None else {})
                | {  # a stored result does not name its submission
                    "submission": one.name,
                    "iteration": one.iteration,
                    "hypothesis": one.hypothesis,
                    "state": one.state.name,
                }
                for one in reversed(listed)
            ]
        }

    @server.tool(annotations=READS)
    @told
    async def summary() -> dict[str, Any]:
        """What is served for each problem, since when and why."""
        served = await client.incumbents()
        return {
            "problems": [
                {
                    "problem": str(one.problem),
                    "device": one.device_id,
                    "policy": one.policy.name,
                    "variant": one.trial.variant.text,
                    "time": timing_dict(one.timing or one.trial.timing),
                    "why": one.why,
                }
                for one in served
            ]
        }

    @server.prompt()
    def optimise(problem: str) -> str:
        """The rules of the optimisation loop, for one problem."""
        return LOOP.format(problem=problem)

    return server


@asynccontextmanager
async def connected(arguments: argparse.Namespace) -> AsyncIterator[MCPServer]:
    async with attune.aio.Client(
        arguments.server,
        token_file=arguments.token_file,
        tls_ca=arguments.tls_ca,
        tls_cert=arguments.tls_cert,
        tls_key=arguments.tls_key,
        tls_server_name=arguments.tls_server_name,
        insecure=arguments.insecure,
    ) as client:
        yield make_server(client)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="attune-mcp", description="A Model Context Protocol server for attune, over stdio"
    )
    parser.add_argument(
        "--server", help="host:port, unix:/path or a name; default: $ATTUNE_SERVER, else this host's daemon"
    )
    parser.add_argument(
        "--token-file",
        help="a file with the token that calls bring; default: a named server's own, else $ATTUNE_TOKEN_FILE",
    )
    parser.add_argument("--tls-ca", help="who signs the server's certificate, a PEM file")
    parser.add_argument("--tls-cert", help="the client's own certificate, a PEM file")
    parser.add_argument("--tls-key", help="its key, a PEM file")
    parser.add_argument(
        "--tls-server-name", help="the name in the server's certificate, where it is another than the host's"
    )
    parser.add_argument("--insecure", action="store_true", help="speak to another host in clear")
    return parser.parse_args(arguments)


def main() -> None:
    arguments = parse(sys.argv[1:])

    async def serve() -> None:
        async with connected(arguments) as server:
            await server.run_stdio_async()

    try:
        anyio.run(serve)
    except attune.AttuneError as error:
        sys.exit(f"attune-mcp: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
