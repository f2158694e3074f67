"""Compiles flex_attention for many problems at once, in processes, so that a run finds the code in PyTorch's cache.

One shape takes several seconds, nearly all of it on the host. The processes have ended before anything is timed.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from attune.problem import Problem

from attune_bench.progress import say

MOST_PROCESSES = 12  # each has a CUDA context of half a GiB


def compile_ahead(problems: Sequence[Problem]) -> None:
    """Fills the cache. What cannot be compiled is left for the run itself to say why."""
    processes = min(len(problems), MOST_PROCESSES, max(1, (os.cpu_count() or 1) - 2))
    if processes < 2:
        return  # nothing to gain over compiling in the run
    spawn = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
            list(pool.map(_compile, [str(problem) for problem in problems]))
    except BrokenProcessPool:
        say("compiling flex_attention ahead broke a process; the run compiles what is missing")


def _compile(text: str) -> None:
    from attune_bench.contestants.flex import Flex
    from attune_bench.inputs import make_inputs

    problem = Problem.parse(text)
    try:
        Flex().prepare(problem, make_inputs(problem, seed=0))
    except Exception:  # the run meets the same error and reports it
        return
