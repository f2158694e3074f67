"""What the daemon answers for each problem, tuned first if asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import attune
from attune.errors import AttuneError
from attune.problem import Problem
from attune.values import Answer

from attune_bench.progress import Progress, say
from attune_bench.work import flops

COMPILE_S = 30.0  # that the code of an answer that nobody tuned is waited for


@dataclass(frozen=True, slots=True)
class Tuning:
    """How long to tune, in seconds: each problem, and all together."""

    max_time: float | None  # of trials; None: until the daemon's default search ends by itself
    deadline: float  # of `clock`; problems not reached by then are asked for only
    families: tuple[str, ...] = ()  # empty: all


def ask(
    client: attune.Client,
    problems: Sequence[Problem],
    device: str,
    tuning: Tuning | None,
    clock: Callable[[], float] = time.monotonic,
) -> dict[Problem, Answer | str]:
    """For each problem the daemon's answer with its artifact, or in a line why there is none.

    Tuning comes before anything else that uses the GPU: the daemon promotes no timing taken beside another process.
    The problems with the least work come first. When the deadline cuts the others off, it is the costliest to tune, and
    what was found for smaller ones serves them.
    """
    answers: dict[Problem, Answer | str] = {}
    if not tuning:
        _have_compiled(client, problems, device, clock)
    progress = Progress("tune" if tuning else "ask", len(problems), clock)
    for problem in sorted(problems, key=flops):
        try:
            if tuning and clock() < tuning.deadline:
                _tune(client, problem, device, tuning)
            answer = client.best(problem, device=device, artifact=True, wait=COMPILE_S)
            answers[problem] = answer
            progress.step(f"{problem}  {answer.provenance.name}  {answer.variant.text}")
        except AttuneError as error:
            answers[problem] = _line(error)
            progress.step(f"{problem}  {answers[problem]}")
    return answers


def _have_compiled(client: attune.Client, problems: Sequence[Problem], device: str, clock: Callable[[], float]) -> None:
    """The code of all answers is compiled side by side from now on, not each when it is waited for."""
    progress = Progress("compile", len(problems), clock)
    for problem in problems:
        try:
            client.best(problem, device=device)
            progress.step(f"{problem}  asked for")
        except AttuneError as error:
            progress.step(f"{problem}  {_line(error)}")  # asked for again below


def _line(error: AttuneError) -> str:
    return str(error).splitlines()[0]


def _tune(client: attune.Client, problem: Problem, device: str, tuning: Tuning) -> None:
    try:
        client.tune(problem, device=device, families=tuning.families, max_time=tuning.max_time).result()
    except AttuneError as error:
        say(f"{problem}: tuning ended with {error}; what is served is asked for all the same")
