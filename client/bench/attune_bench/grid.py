"""Which problems are benched: those of a file, one a line, or the grid that comes with the package."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from attune.errors import AttuneError
from attune.problem import Problem

from attune_bench.error import BenchError

GRID = Path(__file__).with_name("grid.txt")
EIGHT_BIT = Path(__file__).with_name("eight_bit.txt")
# Tried first on a new host: one launch-bound, one masked, one decoding problem.
SMOKE = ("b1.h1.q128.d64.f16", "b2.h8.q512.d64.f16.causal", "b1.h32.kvh8.q1.kv8192.d128.f16")


def read_problems(path: Path) -> list[Problem]:
    """The problems of a file in its order; what follows a `#` is a comment.

    Raises BenchError naming file and line for a text that is no problem, for one that stands there twice or that only
    attune computes, and for a file without any.
    """
    problems: dict[Problem, int] = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            problem = parse(text)
        except (AttuneError, BenchError) as error:
            raise BenchError(f"{path}:{number}: {error}") from error
        if problem in problems:
            raise BenchError(f"{path}:{number}: {problem} stands on line {problems[problem]} already; once is enough")
        problems[problem] = number
    if not problems:
        raise BenchError(f"{path}: holds no problem; one a line is expected, such as b2.h8.q512.d64.f16")
    return list(problems)


def parse(text: str) -> Problem:
    """The problem that `text` names. Raises BenchError for one that only attune computes."""
    problem = Problem.parse(text)
    if problem.sinks or problem.has_own_lengths:
        raise BenchError(f"{problem} has sinks, varlen or pages; the bench has nobody to compare it with")
    return problem


def with_16_bits(problem: Problem) -> Problem:
    """The same with K and V of Q's type."""
    return dataclasses.replace(problem, kv_dtype="")


def is_decode(problem: Problem) -> bool:
    """Whether few queries meet a longer cache of keys; prefill otherwise."""
    return problem.seq_q < problem.seq_kv
