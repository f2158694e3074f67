"""Whether attune.replace_sdpa is ever slower than SDPA, and whether it uses what is faster: GPU time over a grid.

    python3 -m attune_bench.replaced [--tune] [--server unix:/path] [--problems FILE] [--out FILE] [--limit S]

Each problem is tuned or asked for. Then, after attune.warm, SDPA is called inside a block of replace_sdpa and outside
of one, as are the kernel itself and the same kernel on views: keys and values that are slices of a longer cache and,
where queries and keys are as many, all three of one projection. What is captured in a CUDA graph is timed as
attune-bench does it, interleaved, on inputs that rotate (docs/bench.md). The report says where the block is slower than
0.98x of SDPA, where the kernel is 3 % faster and not used, and where views take 2 % more than dense tensors.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attune
import torch
import torch.nn.functional as F
from attune.background.settings import ACCEPTABLE
from attune.errors import AttuneError
from attune.problem import Problem
from attune.values import Answer, Provenance

from attune_bench.answers import Tuning, ask
from attune_bench.graph import Replay, free_memory, sized_replay
from attune_bench.grid import GRID, read_problems
from attune_bench.inputs import Inputs, rotating_inputs
from attune_bench.markdown import table
from attune_bench.progress import say
from attune_bench.quiet import idle_daemon
from attune_bench.rounds import Rules, interleave
from attune_bench.statistics import median_interval

SLOWER = 0.98  # of SDPA's speed
FASTER = 1.03  # than SDPA, by which the kernel is to be used
VIEWS = 1.02  # of the dense layout's time
ROOM = 256  # keys that a cache has beyond those that are read
SDPA, BLOCK, KERNEL, SLICED, PACKED = "sdpa", "replace_sdpa", "kernel", "kernel, sliced cache", "kernel, packed"


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="address of the daemon; default: $ATTUNE_SERVER, or this host's")
    parser.add_argument("--device", default="cuda:0", help="the daemon's name of the device")
    parser.add_argument("--problems", type=Path, default=GRID, metavar="FILE", help="default: the bench's grid")
    parser.add_argument("--tune", action="store_true", help="tune each problem first; default: ask only")
    parser.add_argument("--families", type=lambda text: tuple(text.split(",")), default=(), metavar="NAMES")
    parser.add_argument("--max-time", type=float, default=2.0, metavar="S", help="of trials a problem")
    parser.add_argument("--row-time", type=float, default=0.5, metavar="S", help="of samples a problem")
    parser.add_argument("--limit", type=float, default=240.0, metavar="S", help="begin nothing after so many seconds")
    parser.add_argument("--out", type=Path, required=True, help="the report, written after each problem")
    return parser.parse_args(given)


def sliced(given: Inputs) -> Inputs:
    """Keys and values as the first of a longer cache."""

    def of_cache(tensor: torch.Tensor) -> torch.Tensor:
        batch, heads, length, dim = tensor.shape
        cache = tensor.new_empty(batch, heads, length + ROOM, dim)
        cache[:, :, :length] = tensor
        return cache[:, :, :length]

    return Inputs(given.q, of_cache(given.k), of_cache(given.v))


def packed(given: Inputs) -> Inputs:
    """Queries, keys and values of one projection, [batch, length, heads_q + 2 heads_kv, head_dim]."""
    tensors = [tensor.transpose(1, 2) for tensor in (given.q, given.k, given.v)]
    q, k, v = torch.cat(tensors, 2).split([tensor.shape[2] for tensor in tensors], 2)
    return Inputs(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))


def views_of(problem: Problem, inputs: list[Inputs]) -> dict[str, list[Inputs]]:
    views = {SLICED: [sliced(given) for given in inputs]}
    if problem.seq_q == problem.seq_kv:
        views[PACKED] = [packed(given) for given in inputs]
    return views


def replays_of(problem: Problem, answer: Answer | str, inputs: list[Inputs]) -> tuple[dict[str, Replay], int]:
    """Graphs by contestant, and how many calls inside the block were the kernel's, of those that one graph captured."""
    causal, grouped = problem.mask == "causal", problem.heads_q != problem.heads_kv

    def sdpa(given: Inputs) -> torch.Tensor:
        return F.scaled_dot_product_attention(given.q, given.k, given.v, is_causal=causal, enable_gqa=grouped)

    replays = {SDPA: sized_replay(sdpa, inputs)}
    with attune.replace_sdpa() as replaced:
        replays[BLOCK] = sized_replay(sdpa, inputs)
        before = replaced.stats.launched
        Replay(sdpa, inputs, 1)
        launched = replaced.stats.launched - before
    if isinstance(answer, Answer):
        kernel = attune.load(answer)
        replays[KERNEL] = sized_replay(launching(kernel), inputs)
        for name, of_views in views_of(problem, inputs).items():
            replays[name] = sized_replay(launching(kernel), of_views)
    return replays, launched


def launching(kernel: attune.Kernel) -> Callable[[Inputs], torch.Tensor]:
    return lambda given: kernel(given.q, given.k, given.v)


def row_of(problem: Problem, answer: Answer | str, row_time: float, memory: tuple[int, int]) -> dict[str, Any]:
    inputs = rotating_inputs(problem, *memory)
    replays, launched = replays_of(problem, answer, inputs)
    timers = {name: replay.sample_us for name, replay in replays.items()}
    rules = Rules(seconds=row_time, max_samples=25)
    samples = interleave(timers, rules, time.monotonic, seed=1)
    us = {name: median_interval(found).median for name, found in samples.items()}
    row = {
        "problem": str(problem),
        "served": answer if isinstance(answer, str) else f"{answer.provenance.name} {answer.variant.text}",
        "us": {name: round(each, 3) for name, each in us.items()},
        "samples": {name: len(found) for name, found in samples.items()},
        "launched": bool(launched),
        "block_vs_sdpa": round(us[SDPA] / us[BLOCK], 4),
        "kernel_vs_sdpa": round(us[SDPA] / us[KERNEL], 4) if KERNEL in us else None,
        "views": {name: round(us[name] / us[KERNEL], 4) for name in (SLICED, PACKED) if name in us},
    }
    replays.clear()
    del inputs
    free_memory()
    return row


def verdicts(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The rows that break a bound."""
    unused = [row for row in rows if not row["launched"] and (row["kernel_vs_sdpa"] or 0) >= FASTER]
    return {
        "rows": len(rows),
        "attune's": sum(row["launched"] for row in rows),
        f"slower than {SLOWER}x of SDPA": [[row["problem"], row["block_vs_sdpa"]] for row in rows if _is_slower(row)],
        f"{FASTER}x as fast, and not used": [[row["problem"], row["kernel_vs_sdpa"]] for row in unused],
        f"views beyond {VIEWS}x of dense": [
            [row["problem"], name, ratio] for row in rows for name, ratio in row["views"].items() if ratio > VIEWS
        ],
    }


def _is_slower(row: dict[str, Any]) -> bool:
    return row["block_vs_sdpa"] < SLOWER


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    names = (SDPA, BLOCK, KERNEL, SLICED, PACKED)
    lines = [
        (
            row["problem"],
            *(f"{row['us'][name]:.2f}" if name in row["us"] else "" for name in names),
            f"{row['block_vs_sdpa']:.3f}",
            "attune" if row["launched"] else "SDPA",
        )
        for row in rows
    ]
    return "\n".join(table(("problem", *(f"{name} us" for name in names), "block vs sdpa", "runs"), lines, left=1))


def write(given: argparse.Namespace, rows: Sequence[dict[str, Any]], more: dict[str, Any]) -> None:
    report = {**more, "verdicts": verdicts(rows), "rows": rows}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(report, indent=2) + "\n")
    given.out.with_suffix(".md").write_text(markdown(rows) + "\n")


def main(given: argparse.Namespace) -> None:
    start = time.monotonic()
    problems = read_problems(given.problems)
    tuning = Tuning(given.max_time, start + given.limit / 2, given.families) if given.tune else None
    rows: list[dict[str, Any]] = []
    with attune.Client(given.server) as client:
        answers = ask(client, problems, given.device, tuning)
        here = torch.cuda.get_device_properties(torch.cuda.current_device())
        more = {"device": here.name, "torch": torch.__version__, "tuning_s": round(time.monotonic() - start, 1)}
        acceptable = (*ACCEPTABLE, Provenance.HEURISTIC)
        attune.configure(client, device=given.device, acceptable=acceptable)
        with idle_daemon(given.server), torch.inference_mode():
            attune.warm(problems, timeout=max(1.0, given.limit / 4))
            more["warm_s"] = round(time.monotonic() - start - more["tuning_s"], 1)
            say(f"warm: {attune.state()}")
            for problem in problems:
                if time.monotonic() - start > given.limit:
                    say(f"the limit of {given.limit:g} s came first: {len(problems) - len(rows)} problems are left")
                    break
                try:
                    row = row_of(problem, answers[problem], given.row_time, (here.L2_cache_size, here.total_memory))
                except (AttuneError, RuntimeError) as error:
                    say(f"{problem}: {error}")
                    continue
                rows.append(row)
                write(given, rows, more)
                say(f"{problem}: {row['us']} {row['block_vs_sdpa']} {'attune' if row['launched'] else 'SDPA'}")
    say(json.dumps(verdicts(rows), indent=2))


if __name__ == "__main__":
    main(arguments())
