"""One problem from end to end: everybody made ready and checked, then timed in turn."""

from __future__ import annotations

import dataclasses
import time
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from attune.problem import Problem

from attune_bench.check import Case, check, make_cases
from attune_bench.contestants.contestant import Contestant, NotApplicable, Ready, Skipped, first_line
from attune_bench.device import Device, Facts
from attune_bench.graph import Replay, free_memory, sized_replay
from attune_bench.grid import is_decode
from attune_bench.inputs import Inputs, rotating_inputs
from attune_bench.latency import eager_latencies
from attune_bench.records import Eager, Result, Row, Served, Status, Timing
from attune_bench.rounds import Rules, interleave
from attune_bench.statistics import median_interval
from attune_bench.work import Roofline, compulsory_bytes, flops


@dataclass(frozen=True, slots=True)
class Stage:
    """What all rows of a run share."""

    device: Device
    facts: Facts
    roof: Roofline
    contestants: Sequence[Contestant]
    rules: Rules


def bench_row(stage: Stage, problem: Problem, served: Served | None) -> Row:
    """Everything about one problem. A contestant that cannot run it has a result that says why."""
    seed = zlib.crc32(str(problem).encode())
    results, ready = _check_all(stage.contestants, problem)
    inputs = rotating_inputs(problem, stage.facts.l2_bytes, stage.facts.memory_bytes)
    replays = _capture_all(ready, results, inputs)
    timings = _time(replays, stage.rules, seed)
    state = stage.device.state()
    eager = _eager({name: ready[name] for name in replays}, inputs, timings, seed)
    for name in replays:
        results[name] = dataclasses.replace(results[name], timing=timings[name], eager=eager[name])
    replays.clear()
    row = Row(
        problem=str(problem),
        kind="decode" if is_decode(problem) else "prefill",
        flops=flops(problem),
        bytes=compulsory_bytes(problem),
        roof_us=stage.roof.time_us(problem),
        bound=stage.roof.bound(problem),
        input_sets=len(inputs),
        results=results,
        served=served,
        sm_clock_mhz=state.sm_clock_mhz,
        power_w=state.power_w,
        throttle=state.throttle,
    )
    del inputs, ready
    free_memory()
    return row


def _check_all(contestants: Sequence[Contestant], problem: Problem) -> tuple[dict[str, Result], dict[str, Ready]]:
    """Everybody's result so far, and those who can be timed, both in the contestants' order."""
    cases = make_cases(problem)
    results: dict[str, Result] = {}
    ready: dict[str, Ready] = {}
    for contestant in contestants:
        name = contestant.name
        try:
            made = contestant.prepare(problem, cases[0].inputs)
            results[name] = _checked(name, problem, made, cases)
            ready[name] = made
        except NotApplicable as error:
            results[name] = Result(name, Status.NOT_APPLICABLE, str(error))
        except Skipped as error:
            results[name] = Result(name, Status.SKIPPED, str(error))
        except Exception as error:  # whatever a contestant raises is its result, and the others go on
            results[name] = Result(name, Status.NOT_APPLICABLE, first_line(error))
            torch.cuda.synchronize()  # but a device that the error left unusable ends the run here
    return results, ready


def _capture_all(ready: dict[str, Ready], results: dict[str, Result], inputs: list[Inputs]) -> dict[str, Replay]:
    """Everybody's graph; who cannot be captured has that for a result."""
    replays: dict[str, Replay] = {}
    for name, contestant in ready.items():
        try:
            with contestant.selected():
                replays[name] = sized_replay(contestant.run, inputs)
        except Exception as error:  # as above
            reason = f"in a CUDA graph: {first_line(error)}"
            results[name] = dataclasses.replace(results[name], status=Status.NOT_APPLICABLE, reason=reason)
            torch.cuda.synchronize()
    return replays


def _checked(name: str, problem: Problem, ready: Ready, cases: list[Case]) -> Result:
    with ready.selected():
        accuracy, why = check(problem, ready.run, cases)
    return Result(name, Status.WRONG if why else Status.RIGHT, why, ready.note, accuracy)


def _time(replays: dict[str, Replay], rules: Rules, seed: int) -> dict[str, Timing]:
    timers = {name: replay.sample_us for name, replay in replays.items()}
    samples = interleave(timers, rules, time.monotonic, seed)
    return {name: Timing(median_interval(us), len(us), replays[name].runs) for name, us in samples.items()}


def _eager(ready: dict[str, Ready], inputs: list[Inputs], timings: dict[str, Timing], seed: int) -> dict[str, Eager]:
    def selected(name: str) -> AbstractContextManager:
        return ready[name].selected()

    runs = {name: (lambda made=made: made.run(inputs[0])) for name, made in ready.items()}
    us = {name: timing.us.median for name, timing in timings.items()}
    return eager_latencies(runs, us, selected, seed)
