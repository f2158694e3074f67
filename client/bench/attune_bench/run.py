"""A run: tune or ask first, then, with the device to itself, time; then record and write."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator, Mapping

import attune
from attune.problem import Problem
from attune.values import Answer

from attune_bench.answers import Tuning, ask
from attune_bench.baselines import record_baselines
from attune_bench.daemon import DaemonOptions, running_daemon
from attune_bench.documents import write_documents
from attune_bench.error import BenchError
from attune_bench.grid import EIGHT_BIT, GRID, SMOKE, parse, read_problems, with_16_bits
from attune_bench.jsonl import read_run
from attune_bench.progress import say
from attune_bench.quiet import idle_daemon, no_daemon
from attune_bench.records import OURS, OURS_16
from attune_bench.timed_run import TimedRun

DEADLINE_PASSED = 3
TUNING_SHARE = 0.5  # of the deadline


def bench(options: argparse.Namespace) -> int:
    """The whole run; its exit code."""
    start = time.monotonic()
    before = read_run(options.resume) if options.resume else None
    if before:
        problems = [Problem.parse(text) for text in before.header.problems]
        options.contestants = before.header.contestants
    else:
        problems = chosen_problems(options)
    done = {row.problem for row in before.rows} if before else set()
    left = [problem for problem in problems if str(problem) not in done]
    if OURS in options.contestants:
        answers, quiet = _ask(options, asked(left, options.contestants), start)
    else:
        answers, quiet = {}, contextlib.nullcontext()
    timed = _timed_run(options, problems, left, answers, start)
    with quiet:
        path, run = timed.run(before)
    for written in write_documents(run, path):
        say(f"wrote {written}")
    if options.record:
        with _client(options) as client:
            say(f"recorded {record_baselines(client, options.device, run)} baselines")
    if len(run.rows) < len(problems):
        say(f"the deadline of {options.deadline:g} s came first; go on with --resume {path}")
        return DEADLINE_PASSED
    return 0


def chosen_problems(options: argparse.Namespace) -> list[Problem]:
    """What the command line asks for; the grid when it names nothing."""
    if options.problem:
        return [parse(text) for text in options.problem]
    if options.smoke:
        return [Problem.parse(text) for text in SMOKE]
    return read_problems(options.problems or (EIGHT_BIT if options.eight_bit else GRID))


def asked(problems: list[Problem], contestants: tuple[str, ...]) -> list[Problem]:
    """What the daemon is asked for: the problems, and for `attune16` those of 8 bits with 16."""
    twins = [with_16_bits(problem) for problem in problems if problem.kv_dtype] if OURS_16 in contestants else []
    return list(dict.fromkeys([*problems, *twins]))


@contextlib.contextmanager
def _client(options: argparse.Namespace) -> Iterator[attune.Client]:
    """Of the daemon that runs, or of one started for the block."""
    if not options.attuned:
        with attune.Client(options.server) as client:
            yield client
        return
    own = DaemonOptions(options.attuned, options.data, options.lock_dir, options.daemon_libraries, options.kernels)
    with running_daemon(own) as address, attune.Client(address) as client:
        yield client


def _ask(
    options: argparse.Namespace, left: list[Problem], start: float
) -> tuple[Mapping[Problem, Answer | str], contextlib.AbstractContextManager]:
    """The daemon's answers, and a context in which it leaves the device alone.

    A daemon of the bench's own has ended by then: its worker would keep the device as long as it lives.
    """
    tuning = None
    if options.tune:
        tuning = Tuning(options.max_time, start + TUNING_SHARE * (options.deadline or float("inf")), options.families)
    with _client(options) as client:
        device = next((device for device in client.devices() if device.id == options.device), None)
        if device is None:
            raise BenchError(
                f"--device is {options.device}, which the daemon does not have; `attune devices` lists what it has"
            )
        answers = ask(client, left, options.device, tuning)
    return answers, no_daemon(options.lock_dir, device) if options.attuned else idle_daemon(options.server)


def _timed_run(
    options: argparse.Namespace,
    problems: list[Problem],
    left: list[Problem],
    answers: Mapping[Problem, Answer | str],
    start: float,
) -> TimedRun:
    return TimedRun(
        device=options.device,
        contestants=options.contestants,
        problems=problems,
        left=left,
        answers=answers,
        row_time=options.row_time,
        heat_time=options.heat_time,
        deadline=start + (options.deadline or float("inf")),
        out=options.out,
        name="smoke" if options.smoke else "8bit" if options.eight_bit else "bench",
        resume=options.resume,
    )
