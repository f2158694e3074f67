#!/usr/bin/env python3
"""Runs the bugs planted into attention_mma on the CPU (tests/kernels/README.md), where warps take turns in random
order, copies land late and shared memory begins as NaN: what it finds of races that a GPU hides. Half a minute of a
core each.

    python3 tests/gpu/planted_on_cpu.py --kind race
"""

import argparse
import concurrent.futures
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import planted
from planted_all import ALL

LIMIT_S = 600


def emulation():
    """tests/kernels/run."""
    loader = importlib.machinery.SourceFileLoader("emulation", str(planted.ROOT / "tests/kernels/run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("emulation", loader))
    loader.exec_module(module)
    return module


def runs_there(mutant, run):
    """The emulation has PTX wrappers of its own, and no other family."""
    if mutant.kind == "cheat" or mutant.family != "attention_mma":
        return False
    return not (run.HERE / "ptx/attention_mma" / mutant.file).exists()


def verdict(mutant, run):
    """("found", "missed" or "failed": it does not compile there; what the emulation says last)."""
    with tempfile.TemporaryDirectory() as directory:
        root = planted.write(mutant, pathlib.Path(directory))
        (root / mutant.folder).rename(root / mutant.family)
        tree = pathlib.Path(directory, "tree")
        tree.mkdir()
        run.prepare(root, tree)
        code = planted.complete(mutant.family, mutant.variant) | planted.problem_defines(mutant.problem)
        code["LAYOUT"] = int(code["VARLEN"] or "bshd" in mutant.problem.split("."))
        values = [str(code[name]) for name in run.NAMES]
        _, right, said = run.check(os.environ.get("CXX", "c++"), tree, values, LIMIT_S)
    if " error: " in said:
        return "failed", next(line for line in said.splitlines() if " error: " in line)
    return "missed" if right else "found", (said.strip().splitlines() or [""])[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="race", help="of bugs; default race")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), metavar="N")
    arguments = parser.parse_args()
    run = emulation()
    mutants = [each for each in ALL if each.kind == arguments.kind and runs_there(each, run)]
    if not mutants:
        kinds = sorted({each.kind for each in ALL if runs_there(each, run)})
        parser.error(f"--kind={arguments.kind} is none of attention_mma's; there are {', '.join(kinds)}")
    with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        for mutant, (outcome, said) in zip(mutants, pool.map(lambda each: verdict(each, run), mutants), strict=True):
            print(f"{outcome:6} {mutant.name:45} {said[:100]}", flush=True)


if __name__ == "__main__":
    main()
