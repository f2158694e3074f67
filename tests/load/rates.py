"""Figures of two sides that were measured in turn, and how they compare."""

import os
import pathlib
import random
import re
import statistics
import subprocess


def ticks(pid):
    """Of CPU time: its own in user and kernel mode, and the same of its children that have ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:15]]


def cpu_seconds(pid):
    return sum(ticks(pid)[:2])


def family_cpu_seconds(pid):
    """Of a process and of all that it has started, living or ended. 0 of one that ends meanwhile: its parent has it."""
    try:
        spent = sum(ticks(pid))
        children = [one.read_text().split() for one in pathlib.Path(f"/proc/{pid}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return spent + sum(family_cpu_seconds(child) for one in children for child in one)


def look_ups(query_load, daemon, seconds, *flags):
    """A round of tests/load/query_load: GetBest's calls a second, and a call's microseconds of the daemon's CPU."""
    command = [str(query_load), f"--server={daemon.address}", "--rounds=1", f"--round_time={seconds}s", *flags]
    before = cpu_seconds(daemon.process.pid)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    spent = cpu_seconds(daemon.process.pid) - before
    ping, best = (int(re.search(rf"{name} +(\d+) calls/s", done.stdout).group(1)) for name in ("Ping", "GetBest"))
    return best, spent / (2 * seconds * (ping + best)) * 1e6  # each was asked twice, once to warm up


def ratio(ones, others):
    """Of the medians, and 2.5 % and 97.5 % of 2,000 resamplings of the rounds, both sides of a round together."""
    return interval(list(zip(ones, others, strict=True)), lambda rounds: median(0, rounds) / median(1, rounds))


def paired(ones, others):
    """The median of the rounds' ratios, and the like: for rounds that differ more from one another than their sides."""
    return interval(
        list(zip(ones, others, strict=True)), lambda rounds: statistics.median(one / other for one, other in rounds)
    )


def median(side, rounds):
    return statistics.median(round_[side] for round_ in rounds)


def interval(rounds, figure):
    draw = random.Random(1)
    drawn = sorted(figure([draw.choice(rounds) for _ in rounds]) for _ in range(2000))
    return figure(rounds), drawn[50], drawn[1949]
