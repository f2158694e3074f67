"""FlashAttention's test grid through attune.attention, from an empty store: when first launches come, and what launches
after attune.warm.

    python3 flash_attn_grid.py [--server unix:/path] [--out FILE] [--limit S] [--first S] [--every N]

Lengths, head dims, heads, masks and dtypes are those of FlashAttention 2's test_flash_attn_output, in its layout
[batch, length, heads, head_dim], with its bottom-right causal mask. First, for --first seconds, shapes drawn of it are
called over and over, one after the other, until one of the calls is attune's; until then torch computes. Then
attune.warm asks for all of them; each is called once, counted, and held to the daemon's rule: every error within the
tolerance, the largest at most twice that of a naive computation (attune_bench.tolerance).

Answers that nobody tuned are accepted, and kernels run whether or not SDPA is faster: this is about what runs. Needs
attune-bench beside the client.
"""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import partial_report
import torch
from attune_bench.inputs import Inputs, make_inputs
from attune_bench.reference import fp32_attention, naive_attention
from attune_bench.tolerance import errors_of, largest_allowed, why_wrong
from partial_report import Report, say

import attune
from attune import Problem
from attune.torch.dispatch import attend_options
from attune.torch.fallback import Stats
from attune.torch.options import options_of

BATCH = 4
HEADS = {"mha": (6, 6), "mqa": (6, 1), "gqa": (6, 2)}
HEAD_DIMS = (32, 40, 59, 64, 96, 111, 128, 160, 192, 224, 256)
LENGTHS = (
    (113, 203), (128, 217), (113, 211), (108, 256), (256, 512),
    (512, 256), (1024, 1024), (1023, 1024), (1024, 1023), (2048, 2048),
)  # fmt: skip
DTYPES = ("f16", "bf16")
POLL_S = 0.002  # between two calls of a shape that has no kernel yet
PATIENCE_S = 20.0  # for one first launch


def grid() -> Iterator[Problem]:
    """As attune.attention asks for them."""
    kinds = itertools.product(DTYPES, HEADS.values(), (False, True), HEAD_DIMS, LENGTHS)
    for dtype, (heads_q, heads_kv), causal, head_dim, (seq_q, seq_kv) in kinds:
        mask = "none" if not causal else "causal" if seq_q == seq_kv else "causal-br"
        yield Problem(
            batch=BATCH,
            heads_q=heads_q,
            heads_kv=heads_kv,
            seq_q=seq_q,
            seq_kv=seq_kv,
            head_dim=head_dim,
            dtype=dtype,
            mask=mask,
            layout="bshd",
        )


def call(stats: Stats, problem: Problem, given: Inputs) -> torch.Tensor:
    """attune.attention of `problem`."""
    causal = None if problem.mask == "none" else "bottom-right"
    options = options_of(False, causal, None, 0.0, None, False, None, problem.heads_q != problem.heads_kv)
    return attend_options(stats, given.q, given.k, given.v, None, 0.0, options)


def first_launch(problem: Problem) -> dict[str, Any]:
    """How long it takes from the first call of a shape to the first that is attune's."""
    given, stats = make_inputs(problem, 0), Stats()
    start = time.perf_counter()
    longest = 0.0
    while True:
        before = time.perf_counter()
        call(stats, problem, given)
        now = time.perf_counter()
        longest = max(longest, now - before)
        found = {
            "problem": str(problem),
            "seconds": round(now - start, 4) if stats.launched else None,
            "longest_call_ms": round(1e3 * longest, 3),
            "without_kernel": dict(stats.fallbacks),
        }
        if stats.launched or now - start > PATIENCE_S:
            torch.cuda.synchronize()
            return found
        time.sleep(POLL_S)


def first_launches(report: Report, shapes: list[Problem], seconds: float) -> None:
    end = time.monotonic() + min(seconds, report.left())
    launches: list[dict[str, Any]] = []
    for problem in shapes:
        if time.monotonic() > end:
            break
        launches.append(first_launch(problem))
        times = [one["seconds"] for one in launches if one["seconds"] is not None]
        report.add(
            "first_launches",
            {
                "shapes": len(launches),
                "launched": len(times),
                "median_s": statistics.median(times) if times else None,
                "longest_s": max(times, default=None),
                "each": launches,
            },
        )
    say(f"first launches: {report.found.get('first_launches', {}).get('median_s')} s (median of {len(launches)})")


def warmed(report: Report, problems: list[Problem]) -> None:
    start = time.monotonic()
    answered = attune.warm(problems, timeout=max(1.0, report.left() - 25.0))
    state = attune.state()
    found = {
        "answered": answered,
        "seconds": round(time.monotonic() - start, 2),
        "problems": len(problems),
        "kernels": state.kernels,
        "pending": state.pending,
        "questions": state.questions,
        "followed": state.followed,
        "without_kernel": dict(state.without_kernel),
    }
    report.add("warm", found)
    say(f"warm: {found}")


def error_of(problem: Problem, given: Inputs, out: torch.Tensor) -> tuple[float, float, str]:
    """The largest error by what is allowed and by a naive computation's, and what is wrong."""
    reference = fp32_attention(problem, given)
    plain = float((naive_attention(problem, given).float() - reference).abs().max())
    errors = errors_of(problem.dtype, out.float(), reference, plain)
    allowed = largest_allowed(problem.dtype, errors)
    of_plain = errors.max_abs_error / plain if plain else 0.0
    return errors.max_abs_error / allowed, of_plain, why_wrong(problem.dtype, errors)


def every_call(report: Report, problems: list[Problem]) -> None:
    """Calls each shape once."""
    stats = Stats()
    reasons: dict[str, Counter[str]] = {}
    wrong: list[dict[str, str]] = []
    worst = (0.0, "")
    worst_of_plain = (0.0, "")
    calls = 0
    for problem in problems:
        if report.left() <= 0:
            break
        given = make_inputs(problem, calls)
        before, fell_back = stats.launched, Counter(stats.fallbacks)
        out = call(stats, problem, given)
        calls += 1
        if stats.launched == before:
            for reason in stats.fallbacks - fell_back:
                reasons.setdefault(reason, Counter())[f"d{problem.head_dim}"] += 1
        ratio, of_plain, why = error_of(problem, given, out)
        if why:
            wrong.append({"problem": str(problem), "why": why})
        worst = max(worst, (ratio, str(problem)))
        worst_of_plain = max(worst_of_plain, (of_plain, str(problem)))
        if calls % 60 == 0 or calls == len(problems):
            report.add(
                "calls",
                {
                    "calls": calls,
                    "of": len(problems),
                    "launched": stats.launched,
                    "by_torch": {reason: dict(count) for reason, count in reasons.items()},
                    "wrong": wrong,
                    "worst_error_by_what_is_allowed": worst,
                    "worst_error_by_a_naive_computations": worst_of_plain,
                    "questions": attune.state().questions,
                },
            )
    say(f"calls: {stats.launched} of {calls} launched, {len(wrong)} wrong, {reasons}")


def main() -> None:
    parser = partial_report.arguments(__doc__, limit=120.0)
    parser.add_argument("--first", type=float, default=35.0, metavar="S", help="for first launches; 0 leaves them out")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each N-th shape only")
    parser.add_argument("--hold", type=float, default=5.0, metavar="S", help="as attune.configure has it")
    given = parser.parse_args()
    report = Report(given)
    problems = list(itertools.islice(grid(), 0, None, given.every))
    with attune.Client(given.server) as client, torch.inference_mode():
        attune.configure(
            client, device=given.device, acceptable=partial_report.ANY_ANSWER, never_slower=False, hold=given.hold
        )
        if given.first > 0:
            first_launches(report, random.Random(0).sample(problems, len(problems)), given.first)
        warmed(report, problems)
        every_call(report, problems)
    report.end()


if __name__ == "__main__":
    main()
