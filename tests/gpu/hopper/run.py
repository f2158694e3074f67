"""Checks and times codes of attention_hopper by themselves, many a minute, and PyTorch's contestants beside them.

    run.py check PROBLEM ... --variants "CONSUMERS=2,3 BLOCK_N=80,128" ...
    run.py time PROBLEM ... --variants ... [--against cudnn flash fa4] [--rounds 25] [--json FILE]

Needs a Hopper GPU, CUDA 13's NVRTC and torch; problems as in docs/problems.md, timed ones without lengths of their own
and pages.
check: the rule of docs/measuring.md against fp32, at most twice the error of a plain computation, bits that repeat,
all of O and nothing else written. time: CUDA graphs of each contestant in turn over inputs that exceed twice the L2
together, at most 8 of them; the median of the rounds. fa4 is FlashAttention 4, the package flash-attn-4.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

sys.path[:0] = [
    str(pathlib.Path(__file__).resolve().parents[3] / "client/python"),
    str(pathlib.Path(__file__).resolve().parent),
]
import compile as codes
import expected
import sequences
import torch
from attune.problem import Problem
from launch import Launch, load

TOLERANCE = {torch.float16: 1e-3, torch.bfloat16: 1e-2}


def inputs(problem, seed):
    """(q, k, v, sinks), the first three as [batch, head, row, column]."""
    generator = torch.Generator("cuda").manual_seed(seed)
    dtype = torch.bfloat16 if problem.dtype == "bf16" else torch.float16

    def tensor(heads, rows):
        bshd = problem.layout == "bshd"
        shape = (problem.batch, rows, heads) if bshd else (problem.batch, heads, rows)
        made = torch.randn(*shape, problem.head_dim, generator=generator, device="cuda").to(dtype)
        return made.transpose(1, 2) if bshd else made

    q = tensor(problem.heads_q, problem.seq_q)
    k, v = (tensor(problem.heads_kv, problem.seq_kv) for _ in range(2))
    return q, k, v, torch.randn(problem.heads_q, generator=generator, device="cuda") if problem.sinks else None


def within(got, want, tolerance):
    return bool(((got - want).abs() <= tolerance + tolerance * want.abs()).all())


def faults(launch, problem, want, want_lse, most):
    """What is wrong with a launch's results."""
    launch()
    torch.cuda.synchronize()
    first = launch.o.clone()
    o = first.reshape(-1, problem.seq_q, problem.head_dim).float()
    found = []
    if not within(o, want, TOLERANCE[first.dtype]):
        found.append(f"O is off by {(o - want).abs().max():.1e}")
    elif (o - want).abs().max() > most:
        found.append(f"O is off by {(o - want).abs().max():.1e}, a plain computation by {most / 2:.1e}")
    if launch.lse is not None:
        lse = launch.lse.reshape(-1, problem.seq_q)
        if not bool(((lse == want_lse) | ((lse - want_lse).abs() <= 1e-3 + 1e-3 * want_lse.abs())).all()):
            found.append("LSE is off")
    launch.storage.fill_(float("nan"))
    launch()
    torch.cuda.synchronize()
    if not torch.equal(first, launch.o):
        found.append("bits do not repeat")
    if not launch.guards_whole():
        found.append("written beyond O")
    return found


def wanted(problem, q, k, v, sinks):
    """(O, LSE, the most that an element of O may be off)."""
    want, want_lse = expected.attend(problem, q, k, v, sinks)
    plain, _ = expected.attend(problem, q, k, v, sinks, plain=True)
    return want, want_lse, 2 * (plain - want).abs().max().item()


def check(problem, variants, functions):
    q, k, v, sinks = inputs(problem, seed=1)
    want, want_lse, most = wanted(problem, q, k, v, sinks)
    bad = 0
    for name, code in variants.items():
        for lse in (True, False):
            launch = Launch(functions[name], code, problem, q, k, v, sinks, lse=lse, longest_first=lse)
            for fault in faults(launch, problem, want, want_lse, most):
                print(f"{problem} {name}: {fault}", flush=True)
                bad += 1
    print(f"{problem}: {len(variants)} variants, {bad} faults", flush=True)
    return bad


def check_own_lengths(problem, variants, functions):
    """As `check`, sequence by sequence."""
    dtype = torch.bfloat16 if problem.dtype == "bf16" else torch.float16
    given = sequences.make(problem, seed=1, dtype=dtype)
    sinks = torch.randn(problem.heads_q, device="cuda") if problem.sinks else None
    want = sequences.attend(problem, given, sinks)
    plain = sequences.attend(problem, given, sinks, plain=True)
    most = 2 * max((a[0] - b[0]).abs().max().item() for a, b in zip(plain, want) if a)
    bad = 0
    for name, code in variants.items():
        launch = Launch(functions[name], code, problem, given.q, given.k, given.v, sinks, lse=True, given=given)
        launch()
        torch.cuda.synchronize()
        found, first = [], launch.o.clone()
        for i, expect in enumerate(want):
            if expect is None:
                continue
            o, lse = sequences.of_sequence(problem, given, first, launch.lse, i)
            off = (o.float() - expect[0]).abs().max().item()
            if not within(o.float(), expect[0], TOLERANCE[dtype]) or off > most:
                found.append(f"O of sequence {i} {given.lengths[i]} is off by {off:.1e}, at most {most:.1e}")
            if not bool(((lse == expect[1]) | ((lse - expect[1]).abs() <= 1e-3 + 1e-3 * expect[1].abs())).all()):
                found.append(f"LSE of sequence {i} {given.lengths[i]} is off")
        launch.storage.fill_(float("nan"))
        launch()
        torch.cuda.synchronize()
        if not torch.equal(first, launch.o):
            found.append("bits do not repeat")
        if not launch.guards_whole():
            found.append("written beyond O")
        for fault in found[:4]:
            print(f"{problem} {name}: {fault}", flush=True)
        bad += len(found)
    print(f"{problem}: {len(variants)} variants, {bad} faults", flush=True)
    return bad


def sdpa(problem, q, k, v, backend):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    which = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}[backend]
    options = {"is_causal": problem.mask == "causal", "enable_gqa": problem.heads_q != problem.heads_kv}

    def run():
        with sdpa_kernel(which):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)

    return run


def fa4(problem, q, k, v):
    from flash_attn.cute import flash_attn_func

    rows_first = [tensor.transpose(1, 2) for tensor in (q, k, v)]
    return lambda: flash_attn_func(*rows_first, causal=problem.mask == "causal")


def contestant(problem, tensors, name):
    return fa4(problem, *tensors) if name == "fa4" else sdpa(problem, *tensors, name)


def input_sets(problem):
    """How many the timed runs go through in turn."""
    size = 4 * problem.batch * problem.head_dim * (problem.heads_q * problem.seq_q + problem.heads_kv * problem.seq_kv)
    return max(1, min(8, -(-2 * torch.cuda.get_device_properties(0).L2_cache_size // size)))


def in_turn(calls):
    def run():
        for call in calls:
            call()

    return run


def graph_of(run):
    """(graph, runs in it): about 2 ms of them."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
        begin.record()
        run()
        end.record()
        end.synchronize()
        count = max(1, min(50, int(2 / begin.elapsed_time(end))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(count):
                run()
    return graph, count


def time_all(problem, variants, functions, against, rounds):
    """[(microseconds, name)], fastest first."""
    sets = [inputs(problem, seed) for seed in range(1, 1 + input_sets(problem))]
    runs = {name: in_turn([contestant(problem, each[:3], name) for each in sets]) for name in against}
    heads = [(0, 0), (problem.batch - 1, problem.heads_q - 1)]
    want, _ = expected.attend(problem, *sets[0], heads=heads)
    for name, code in variants.items():
        launches = [Launch(functions[name], code, problem, *each) for each in sets]
        launches[0]()
        got = torch.stack([launches[0].o[b, h] for b, h in heads]).float()
        if not within(got, want, TOLERANCE[sets[0][0].dtype]):
            sys.exit(f"{problem} {name}: wrong")
        runs[name] = in_turn(launches)
    graphs = {name: graph_of(run) for name, run in runs.items()}
    samples = {name: [] for name in runs}
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for number in range(rounds + 2):
        for name, (graph, count) in graphs.items():
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if number >= 2:
                samples[name].append(begin.elapsed_time(end) * 1e3 / count / len(sets))
    return sorted((statistics.median(times), name) for name, times in samples.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["check", "time"])
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--variants", nargs="+", default=["CONSUMERS=3 BLOCK_N=80"])
    parser.add_argument("--against", nargs="*", default=[], choices=["cudnn", "flash", "fa4"])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json")
    given = parser.parse_args()

    problems = [Problem.parse(text) for text in given.problems]
    wanted = {}
    for problem in problems:
        for name, parameters in codes.variants(given.variants).items():
            code = {**parameters, **codes.defines(problem)}
            wanted[tuple(code.items())] = name, code
    cubins = dict(zip(wanted, codes.compile_all([code for _, code in wanted.values()])))
    torch.zeros(1, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    functions = {key: load(cubin, wanted[key][1]) for key, cubin in cubins.items() if cubin}

    bad, results = 0, {}
    for problem in problems:
        needed = codes.defines(problem).items()
        mine = {name: key for key, (name, code) in wanted.items() if key in functions and needed <= code.items()}
        variants = {name: wanted[key][1] for name, key in mine.items()}
        of = {name: functions[key] for name, key in mine.items()}
        if given.mode == "check":
            bad += (check_own_lengths if problem.has_own_lengths else check)(problem, variants, of)
            continue
        results[str(problem)] = time_all(problem, variants, of, given.against, given.rounds)
        query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader"]
        print(f"{problem}, then {subprocess.run(query, capture_output=True, text=True).stdout.strip()}")
        for microseconds, name in results[str(problem)]:
            print(f"{microseconds:10.2f} us {expected.flops(problem) / microseconds / 1e6:7.1f} TFLOP/s  {name}")
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(results, indent=1) + "\n")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
