"""A run: tune or ask first, then, with the device to itself, time."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import attune
from attune.bench.answers import Tuning, ask
from attune.bench.daemon import DaemonOptions, running_daemon
from attune.bench.device_lock import device_lock, lock_file
from attune.bench.documents import write_documents
from attune.bench.error import BenchError
from attune.bench.grid import GRID, SMOKE, read_problems
from attune.bench.jsonl import Run, read_run
from attune.bench.progress import say
from attune.bench.records import OURS
from attune.bench.session import Session
from attune.problem import Problem

DEADLINE_PASSED = 3
TUNING_SHARE = 0.5  # of the deadline
LOCK_PATIENCE_S = 90  # longer than a daemon keeps an idle device by default


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
    if OURS in options.contestants or options.record:
        with _client(options) as client:
            path, run = _with_daemon(options, client, problems, left, before, start)
    else:
        path, run = _session(options, problems, left, start).run(before)
    for written in write_documents(run, path):
        say(f"wrote {written}")
    if len(run.rows) < len(problems):
        say(f"the deadline of {options.deadline:g} s came first; go on with --resume {path}")
        return DEADLINE_PASSED
    return 0


def chosen_problems(options: argparse.Namespace) -> list[Problem]:
    """What the command line asks for; the grid when it names nothing."""
    if options.problem:
        return [Problem.parse(text) for text in options.problem]
    if options.smoke:
        return [Problem.parse(text) for text in SMOKE]
    return read_problems(options.problems or GRID)


@contextlib.contextmanager
def _client(options: argparse.Namespace) -> Iterator[attune.Client]:
    """Of the daemon that runs, or of one started for this run."""
    if not options.attuned:
        with attune.Client(options.server) as client:
            yield client
        return
    own = DaemonOptions(options.attuned, options.data, options.lock_dir, options.daemon_libraries, options.kernels)
    with running_daemon(own) as address, attune.Client(address) as client:
        yield client


def _with_daemon(
    options: argparse.Namespace,
    client: attune.Client,
    problems: list[Problem],
    left: list[Problem],
    before: Run | None,
    start: float,
) -> tuple[Path, Run]:
    device = next((device for device in client.devices() if device.id == options.device), None)
    if device is None:
        raise BenchError(f"--device is {options.device}, which the daemon does not have; `attune devices` lists them")
    session = _session(options, problems, left, start)
    if OURS in options.contestants:
        tuning = None
        if options.tune:
            tuning = Tuning(options.max_time, start + TUNING_SHARE * (options.deadline or float("inf")))
        session.answers = ask(client, left, options.device, tuning)
    if options.record:
        session.recorder = client
    with device_lock(lock_file(options.lock_dir, device.uuid or device.id), LOCK_PATIENCE_S):
        return session.run(before)


def _session(options: argparse.Namespace, problems: list[Problem], left: list[Problem], start: float) -> Session:
    return Session(
        device=options.device,
        contestants=options.contestants,
        problems=problems,
        left=left,
        row_time=options.row_time,
        deadline=start + (options.deadline or float("inf")),
        out=options.out,
        name="smoke" if options.smoke else "bench",
        resume=options.resume,
    )
