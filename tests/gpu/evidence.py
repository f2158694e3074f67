"""What the GPU evidence stands for: hashes of every file that decides what runs on a GPU and how.

    evidence.py check     fails when tests/gpu/evidence.json was not made from the sources as they are
"""

import hashlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "tests/gpu/evidence.json"

# CUDA kernels, and the code that launches, checks and times them.
COVERED = [
    "kernels_src/**/*.cu",
    "kernels_src/**/*.cuh",
    "kernels_src/*/family.textproto",
    "tests/families/*_cuda/*",
    "server/device/cuda/*.cc",
    "server/device/cuda/*.h",
    "server/verify/*.cc",
    "server/verify/*.h",
    "server/measure/*.cc",
    "server/measure/*.h",
]


# What tests/gpu/suite.py runs.
PARTS = ("unit_tests", "exhaustive", "sampled", "as_l4", "l4_grid", "adversarial")


def is_covered(path):
    if path.name.endswith(("_test.cc", "_test.h")):
        return False
    if path.name == "family.textproto":
        return "BACKEND_CUDA" in path.read_text()
    return path.is_file()


def source_hashes(root=ROOT):
    paths = sorted({path for pattern in COVERED for path in root.glob(pattern) if is_covered(path)})
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def check():
    if not EVIDENCE.exists():
        return [f"{EVIDENCE.relative_to(ROOT)} is missing; tests/gpu/suite.py writes it on a GPU host"]
    evidence = json.loads(EVIDENCE.read_text())
    then, now = evidence["sources"], source_hashes()
    problems = [f"{path}: changed since the GPU run" for path in now if path in then and now[path] != then[path]]
    problems += [f"{path}: not there in the GPU run" for path in now if path not in then]
    problems += [f"{path}: was in the GPU run and is gone" for path in then if path not in now]
    problems += [f"the GPU run lacks {part}" for part in PARTS if part not in evidence["parts"]]
    problems += [f"the GPU run failed: {failure}" for failure in evidence["failures"]]
    return problems


def main():
    if sys.argv[1:] != ["check"]:
        sys.exit(__doc__)
    problems = check()
    for problem in problems:
        print(f"evidence: {problem}", file=sys.stderr)
    if problems:
        sys.exit("evidence: run tests/gpu/suite.py on a GPU (docs/gpu-host.md) and commit what it writes")
    print(f"evidence: {len(source_hashes())} files as in the GPU run")


if __name__ == "__main__":
    main()
