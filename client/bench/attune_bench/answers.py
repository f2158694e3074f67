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

# Estimates, good for a budget only.
TRIAL_S = 0.05
RESULT_S = 2e-8  # an element of O
RUN_FLOPS_A_S = 80e12
LEAST_TRIALS = 8
COMPILE_S = 30.0  # that the code of an answer that nobody tuned is waited for


@dataclass(frozen=True, slots=True)
class Tuning:
    """How long to tune, in seconds: each problem, and all together."""

    max_time: float
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


def trials_within(problem: Problem, seconds: float) -> int:
    """About how many trials the daemon makes in so long, and at least LEAST_TRIALS.

    It has compiled dozens ahead by then, and would try them all, however long that takes with a large problem. A trial
    is taken to cost a fixed time, its results' way to the host on every input, and a dozen runs.
    """
    results = problem.batch * problem.heads_q * problem.seq_q * problem.head_dim
    trial = TRIAL_S + results * RESULT_S + 12 * flops(problem) / RUN_FLOPS_A_S
    return max(LEAST_TRIALS, round(seconds / trial))


def _tune(client: attune.Client, problem: Problem, device: str, tuning: Tuning) -> None:
    trials = trials_within(problem, tuning.max_time)
    try:
        client.tune(
            problem,
            device=device,
            families=tuning.families,
            strategy="random",
            max_trials=trials,
            max_time=tuning.max_time,
        ).result()
    except AttuneError as error:
        say(f"{problem}: tuning ended with {error}; what is served is asked for all the same")
