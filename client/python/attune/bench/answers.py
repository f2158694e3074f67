"""What the daemon answers for each problem, tuned first if asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import attune
from attune.bench.progress import Progress, say
from attune.bench.work import flops
from attune.errors import AttuneError
from attune.problem import Problem
from attune.values import Answer


@dataclass(frozen=True, slots=True)
class Tuning:
    """How long to tune, in seconds: each problem, and all together."""

    max_time: float
    deadline: float  # of `clock`; problems not reached by then are asked for only


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
    progress = Progress("tune" if tuning else "ask", len(problems), clock)
    for problem in sorted(problems, key=flops):
        try:
            if tuning and clock() < tuning.deadline:
                _tune(client, problem, device, tuning.max_time)
            answer = client.best(problem, device=device, artifact=True)
            answers[problem] = answer
            progress.step(f"{problem}  {answer.provenance.name}  {answer.variant.text}")
        except AttuneError as error:
            answers[problem] = str(error).splitlines()[0]
            progress.step(f"{problem}  {answers[problem]}")
    return answers


def _tune(client: attune.Client, problem: Problem, device: str, max_time: float) -> None:
    try:
        client.tune(problem, device=device, strategy="random", max_time=max_time).result()
    except AttuneError as error:
        say(f"{problem}: tuning ended with {error}; what is served is asked for all the same")
