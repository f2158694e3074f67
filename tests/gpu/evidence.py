"""What the GPU evidence stands for: hashes of every file that decides what runs on a GPU and how.

    evidence.py check     fails when tests/gpu/evidence.json or sanitize.json was not made from the sources as they are
    evidence.py join OUT FILE:PART[,PART...] ...
                          evidence of several runs of suite.py: of each file the named parts. A part holds as long as
                          what it covers (COVERS) is as it was in its own run.
"""

import fnmatch
import hashlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from uncommented import uncommented

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
    "caches_results",
    "changes_inputs_timed",
    "compile_error",
    "counts_runs",
    "counts_runs_in_global",
    "crash",
    "hang",
    "keeps_output",
    "late_write",
    "leaves_scratch",
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
    "server/device/cuda/check/*.cc",
    "server/device/cuda/check/*.cu",
    "server/device/cuda/check/*.h",
    "server/device/cuda/timing/*.cc",
    "server/device/cuda/timing/*.h",
    "server/verify/*.cc",
    "server/verify/*.h",
    "server/verify/prepared/*.cc",
    "server/verify/prepared/*.h",
    "server/measure/*.cc",
    "server/measure/*.h",
]


# The suite's parts, and which files decide what each finds. Some try many kernels: whole spaces, and what an L4 compiles
# and launches. What checks and times them is tried by the others, on every family and every adversarial kernel.
PARTS = ("unit_tests", "exhaustive", "sampled", "as_l4", "l4_grid", "adversarial")
OF_KERNELS = [path for path in COVERED if path.startswith(("kernels_src/", "server/device/cuda/"))]
COVERS = {part: COVERED for part in PARTS} | {
    "unit_tests": [path for path in COVERED if path.startswith(("server/device/cuda/", "server/verify/"))],
    "exhaustive": OF_KERNELS,
    "as_l4": OF_KERNELS,
    "l4_grid": OF_KERNELS,
}


def is_covered(path):
    if path.name.endswith(("_test.cc", "_test.h")):
        return False
    if path.name == "family.textproto":
        return "BACKEND_CUDA" in path.read_text()
    return path.is_file()


def source_hashes(covered=COVERED, root=ROOT):
    paths = sorted({path for pattern in covered for path in root.glob(pattern) if is_covered(path)})
    return {str(path.relative_to(root)): hash_of(path) for path in paths}


def hash_of(path):
    """Of what a compiler sees: comments may change without a run on a GPU."""
    return hashlib.sha256(uncommented(path.read_text(), path.suffix).encode()).hexdigest()


def changes(then, now, root=ROOT):
    """What differs between the sources of a GPU run and those of today. A family of tests that is gone stands for
    nothing that is there."""
    yield from (f"{path}: changed since the GPU run" for path in now if path in then and now[path] != then[path])
    yield from (f"{path}: not there in the GPU run" for path in now if path not in then)
    gone = [path for path in then if path not in now and not is_gone_family(path, root)]
    yield from (f"{path}: was in the GPU run and is gone" for path in gone)


def check(name, command, covered, parts):
    """What is wrong with the evidence of one file beside this one, which `command` writes on a GPU host."""
    path = ROOT / "tests/gpu" / name
    if not path.exists():
        return [f"{name} is missing; {command} writes it"]
    evidence = json.loads(path.read_text())
    if "runs" in evidence:
        problems = list(changes_of_parts(evidence))
    else:
        problems = list(changes(evidence["sources"], source_hashes(covered)))
    problems += [f"the GPU run lacks {part}" for part in parts if part not in evidence["parts"]]
    problems += [f"the GPU run failed: {failure}" for failure in evidence["failures"]]
    return [f"{name}: {problem}" for problem in problems]


def changes_of_parts(evidence, root=ROOT):
    """Of joined evidence: each part stands for what it covers, as it was in its run."""
    for part in evidence["parts"]:
        run = next(run for run in evidence["runs"] if part in run["parts"])
        now = source_hashes(COVERS[part], root)
        then = {path: value for path, value in run["sources"].items() if covers(part, path)}
        yield from (f"{part}: {change}" for change in changes(then, now, root))


def covers(part, path):
    return any(fnmatch.fnmatch(path, pattern.replace("**/", "*")) for pattern in COVERS[part])


def is_gone_family(path, root):
    return path.startswith("tests/families/") and not (root / path).parent.exists()


def join(files, root=ROOT):
    """`files`: pairs of what a run wrote, or of what was joined before, and the parts to take of it. Failures go with
    their parts."""
    joined = {"runs": [], "parts": {}, "failures": []}
    for run, parts in files:
        of_parts = {part: run["parts"][part] for part in parts}
        for one in run.get("runs", [run]):
            of_one = [part for part in parts if part in one["parts"]]
            kept = {key: one[key] for key in ("command", "date", "sources")} | {"parts": of_one}
            joined["runs"] += [kept] if of_one else []
        joined["failures"] += [failure for failure in run["failures"] if part_of(failure, run) in parts]
        joined["parts"] |= of_parts
    families = joined["parts"].get("adversarial", {})
    for family in [name for name in families if not (root / "tests/families" / name).exists()]:
        del families[family]
        joined["failures"] = [failure for failure in joined["failures"] if not failure.startswith(f"{family}: ")]
    return joined


def part_of(failure, run):
    """The part that a failure is of: a test's or a family's name comes first, else a problem's text."""
    name = failure.partition(": ")[0]
    for part in ("unit_tests", "adversarial"):
        if name in run["parts"].get(part, {}):
            return part
    return next(part for part, of in run["parts"].items() if name in of.get("problems", {}))


def write(report, path):
    text = json.dumps(report, separators=(",", ":")).replace('},{"variant"', '},\n{"variant"')
    path.write_text(text + "\n")


def main():
    if sys.argv[1:2] == ["join"] and len(sys.argv) > 3:
        named = (argument.rpartition(":") for argument in sys.argv[3:])
        files = [(json.loads(pathlib.Path(path).read_text()), parts.split(",")) for path, _, parts in named]
        return write(join(files), pathlib.Path(sys.argv[2]))
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
