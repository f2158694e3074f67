"""What the GPU evidence stands for: hashes of every file that decides what runs on a GPU and how.

    evidence.py check     fails when tests/gpu/evidence.json or sanitize.json was not made from the sources as they are
"""

import hashlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

KERNELS = [
    "kernels_src/**/*.cu",
    "kernels_src/**/*.cuh",
    "kernels_src/*/family.textproto",
]

# What tests/gpu/sanitize.py runs.
SANITIZED = [*KERNELS, "tests/families/*_cuda/*"]

# Families of tests that tests/gpu/suite.py expects verdicts of.
ADVERSARIAL = (
    "changes_inputs_timed",
    "compile_error",
    "counts_runs",
    "crash",
    "hang",
    "out_of_bounds",
    "recognizes_poison",
    "tensor_map",
    "wrong_rows",
)

# What tests/gpu/suite.py runs: CUDA kernels, and the code that launches, checks and times them.
COVERED = [
    *KERNELS,
    *(f"tests/families/{name}_cuda/*" for name in ADVERSARIAL),
    "server/device/cuda/*.cc",
    "server/device/cuda/*.h",
    "server/verify/*.cc",
    "server/verify/*.h",
    "server/measure/*.cc",
    "server/measure/*.h",
]


# The suite's parts.
PARTS = ("unit_tests", "exhaustive", "sampled", "as_l4", "l4_grid", "adversarial")


def is_covered(path):
    if path.name.endswith(("_test.cc", "_test.h")):
        return False
    if path.name == "family.textproto":
        return "BACKEND_CUDA" in path.read_text()
    return path.is_file()


def source_hashes(covered=COVERED, root=ROOT):
    paths = sorted({path for pattern in covered for path in root.glob(pattern) if is_covered(path)})
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def check(name, command, covered, parts):
    """What is wrong with the evidence of one file beside this one, which `command` writes on a GPU host."""
    path = ROOT / "tests/gpu" / name
    if not path.exists():
        return [f"{name} is missing; {command} writes it"]
    evidence = json.loads(path.read_text())
    then, now = evidence["sources"], source_hashes(covered)
    problems = [f"{path}: changed since the GPU run" for path in now if path in then and now[path] != then[path]]
    problems += [f"{path}: not there in the GPU run" for path in now if path not in then]
    problems += [f"{path}: was in the GPU run and is gone" for path in then if path not in now]
    problems += [f"the GPU run lacks {part}" for part in parts if part not in evidence["parts"]]
    problems += [f"the GPU run failed: {failure}" for failure in evidence["failures"]]
    return [f"{name}: {problem}" for problem in problems]


def main():
    if sys.argv[1:] != ["check"]:
        sys.exit(__doc__)
    problems = check("evidence.json", "tests/gpu/suite.py", COVERED, PARTS)
    problems += check("sanitize.json", "tests/gpu/sanitize.py", SANITIZED, ())
    for problem in problems:
        print(f"evidence: {problem}", file=sys.stderr)
    if problems:
        sys.exit("evidence: run what docs/gpu-host.md says on a GPU and commit what it writes")
    print(f"evidence: {len(source_hashes())} files as in the GPU runs")


if __name__ == "__main__":
    main()
