"""Checks codes of attention_mma and times them against each other, interleaved, without a daemon.

    compare.py PLAN [--before TREE] [--rounds 25] [--cache FOLDER] [--json FILE] [--compile-only]

PLAN: a file of lines 'PROBLEM | CODE | CODE ...' (kernel_fixes.plan is one). Problems as in docs/problems.md, without
pages and lengths of their own; codes as "BLOCK_M=128 BLOCK_N=32,64", every combination. A code that begins with
"before:" is of the kernel sources in TREE. Each code is checked as by hopper/run.py (the rule of docs/measuring.md
against fp32, at most twice the error of a plain computation, bits that repeat, nothing written beside O), and tickets
must be zero again. Then all of a line are timed in turn, each in a graph of about 2 ms over inputs that exceed twice
the L2 together. Prints the median of the rounds, its ratio to the line's first, and in how many rounds of ten it was
faster than that. Needs a GPU, CUDA 13's NVRTC and torch; --compile-only no GPU.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "client/python"), str(HERE), str(HERE.parent / "hopper")]
import codes
from attune.problem import Problem

ARCHITECTURE = "sm_90"


def read_plan(path):
    """[(problem, [(name, which tree, code)])]"""
    plan = []
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        text, *parts = (part.strip() for part in line.split("|"))
        problem, wanted = Problem.parse(text), []
        for part in parts:
            tree, _, values = part.rpartition(":")
            for code in codes.codes(values):
                name = f"{tree}: {codes.name(code)}" if tree else codes.name(code)
                wanted.append((name, tree, {**code, **codes.defines(problem)}))
        plan.append((problem, wanted))
    return plan


def build(plan, trees, cache):
    """{(tree, code): (cubin, registers, spilled)}; two that differ in launch-time parameters alone are one compile."""
    keys = {}
    for _, wanted in plan:
        for _, tree, code in wanted:
            keys[key_of(tree, code)] = tree, code
    jobs = [(trees[tree], code, ARCHITECTURE, cache) for tree, code in keys.values()]
    return dict(zip(keys, codes.in_parallel(codes.cubin, jobs)))


def key_of(tree, code):
    return tree, tuple(item for item in code.items() if item[0] not in codes.LAUNCH_TIME)


def faults(launch, problem, want, want_lse, most):
    from run import faults as of_results

    found = of_results(launch, problem, want, want_lse, most)
    if launch.tickets is not None and bool(launch.tickets.any()):
        found.append("tickets are left over")
    return found


def check(problem, wanted, functions):
    import run
    from bound import Launch

    q, k, v, sinks = run.inputs(problem, seed=1)
    want, want_lse, most = run.wanted(problem, q, k, v, sinks)
    bad = 0
    for name, tree, code in wanted:
        launch = Launch(functions[key_of(tree, code)], code, problem, q, k, v, sinks, lse=True)
        for fault in faults(launch, problem, want, want_lse, most):
            print(f"{problem} {name}: {fault}", flush=True)
            bad += 1
    return bad


def time_all(problem, wanted, functions, rounds):
    """{name: microseconds of each round}"""
    import torch
    from bound import Launch
    from run import graph_of, in_turn, input_sets, inputs

    sets = [inputs(problem, seed) for seed in range(1, 1 + input_sets(problem))]
    graphs = {}
    for name, tree, code in wanted:
        launches = [Launch(functions[key_of(tree, code)], code, problem, *each) for each in sets]
        graphs[name] = (*graph_of(in_turn(launches)), launches)
    samples = {name: [] for name in graphs}
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for number in range(rounds + 2):
        for name, (graph, count, _) in graphs.items():
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if number >= 2:
                samples[name].append(begin.elapsed_time(end) * 1e3 / count / len(sets))
    return samples


def table(problem, wanted, built, samples):
    import expected

    first = next(iter(samples.values()))
    query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader"]
    yield f"{problem}, then {subprocess.run(query, capture_output=True, text=True).stdout.strip()}"
    for name, tree, code in wanted:
        times = samples[name]
        _, registers, spilled = built[key_of(tree, code)]
        median = statistics.median(times)
        wins = sum(mine < other for mine, other in zip(times, first)) * 10 / len(times)
        ratio = median / statistics.median(first)
        yield (
            f"{median:10.2f} us {expected.flops(problem) / median / 1e6:7.1f} TFLOP/s {ratio:6.3f}"
            f" {wins:4.1f}/10  {registers} registers{f', {spilled} bytes spilled' if spilled else ''}  {name}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path, help="another kernels_src")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--cache", type=pathlib.Path, help="keeps cubins")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--compile-only", action="store_true")
    given = parser.parse_args()
    plan = read_plan(given.plan)
    built = build(plan, {"": codes.ROOT / "kernels_src", "before": given.before}, given.cache)
    if given.compile_only:
        return
    import torch
    from bound import load

    torch.zeros(1, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    functions = {key: load(cubin, dict(key[1])) for key, (cubin, _, _) in built.items()}
    bad, results = 0, {}
    for problem, wanted in plan:
        bad += check(problem, wanted, functions)
        samples = time_all(problem, wanted, functions, given.rounds)
        results[str(problem)] = samples
        print("\n".join(table(problem, wanted, built, samples)), flush=True)
        torch.cuda.empty_cache()
    if given.json:
        given.json.write_text(json.dumps(results) + "\n")
    print(f"{bad} faults")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
