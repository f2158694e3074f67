"""What tests/gpu/attacks.py does to a daemon, and what must become of each."""

import dataclasses

from submit import same

FAULT = ["CRASHED"]
ENDLESS = ["TIMEOUT"]
OUTSIDE = ["OUT_OF_BOUNDS"]
NO_CODE = ["COMPILE_ERROR"]
NOWHERE = ["refused", "INFEASIBLE"]
# Who writes over what the driver keeps there takes the worker down, or keeps it waiting for ever.
OUTSIDE_OR_DOWN = ["OUT_OF_BOUNDS", "CRASHED", "TIMEOUT"]
# The kernel says with a wrong result that it has found no reference.
FORGED = ["OUT_OF_BOUNDS", "WRONG_RESULT"]
# Right, if late; what counts is what becomes of the others.
RIGHT = ["OK", "UNSTABLE", "TIMEOUT"]
# A device that has the memory gives it.
RIGHT_OR_TOO_MUCH = [*RIGHT, "INFEASIBLE"]


@dataclasses.dataclass(frozen=True)
class Attack:
    name: str
    variant: str
    verdicts: list  # any of them; "refused": there is no trial
    words: str = ""  # that the detail has
    needs_cage: bool = False  # says something only where compilers are caged


def of(attack, name, verdicts, words="", needs_cage=False):
    """ATTACK of attacks_cuda."""
    return Attack(name, f"attacks_cuda:ATTACK={attack},LAUNCH=0,TWIN=0", verdicts, words, needs_cage)


def launched(launch, name, verdicts, words=""):
    return Attack(name, f"attacks_cuda:ATTACK=0,LAUNCH={launch},TWIN=0", verdicts, words)


ATTACKS = [
    of(1, "endless sleep", ENDLESS),
    of(2, "endless once timed", ENDLESS),
    of(3, "barrier in a divergent branch", ENDLESS),
    of(4, "barrier of more threads than there are", [*ENDLESS, *FAULT]),
    of(5, "mbarrier without arrivals", ENDLESS),
    launched(1, "grid of 2^31 - 1 blocks", ENDLESS),
    of(6, "illegal address", FAULT),
    of(7, "misaligned address", FAULT),
    of(8, "trap", FAULT),
    of(9, "assertion", FAULT),
    of(10, "stack of 1 GiB", FAULT),
    of(11, "call of no code", FAULT),
    of(12, "far beyond shared memory", FAULT),
    of(13, "illegal address once timed", FAULT),
    of(14, "writes over all around O", OUTSIDE_OR_DOWN),
    of(15, "forges the reference", FORGED),
    of(16, "forges the reference once timed", FORGED),
    of(17, "guard before O", OUTSIDE),
    of(18, "writes over K", OUTSIDE),
    of(19, "flood of printf", RIGHT),
    of(20, "keeps the device's heap", RIGHT),
    of(21, "480 KiB of local memory a thread", RIGHT_OR_TOO_MUCH),
    of(22, "4 MiB of static shared memory", NO_CODE, "too much shared data"),
    launched(2, "1 GiB of dynamic shared memory", NOWHERE, "shared memory"),
    launched(3, "4,096 threads a block", NOWHERE, "threads"),
    of(30, "include of a host's file", NO_CODE, needs_cage=True),
    of(31, "include behind a digraph", NO_CODE, needs_cage=True),
    of(32, "include from the toolkit and up", NO_CODE, needs_cage=True),
    of(33, "include of /etc/passwd", NO_CODE, needs_cage=True),
    of(34, "incbin", NO_CODE, "incbin"),
    of(35, "nested launch", NO_CODE),
    of(38, "nested launch with its declarations", NO_CODE, "Unresolved extern"),
    of(37, "a file that includes itself", NO_CODE, "includes itself"),
    of(36, "template bomb", ENDLESS, "compiling"),
]


def begins(line):
    """The source behind a line more."""
    return lambda text: f"{line}\n{text}"


def first(statement):
    """The kernel, which first of all does that."""
    return lambda text: text.replace("ATTENTION_KERNEL {\n", f"ATTENTION_KERNEL {{\n  {statement}\n", 1)


# Half of each warp waits at a barrier for the other half, which waits for the first.
DIVERGENT = """__shared__ volatile int passed;
  if (threadIdx.x == 0) passed = 0;
  __syncthreads();
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
    passed = 1;
  } else {
    while (passed == 0) {
    }
  }"""
NESTED = """attention<<<1, 1>>>(q, k, v, o, lse, runs, heads_q, group, seq_q, seq_kv, is_causal, causal_offset, 0, 0, 0,
                      0, 0, 0, rows);"""
# 2^40 classes.
BOMB = """template <int kDepth, long long kPath>
struct Bomb {
  static constexpr long long kValue = Bomb<kDepth - 1, 2 * kPath>::kValue + Bomb<kDepth - 1, 2 * kPath + 1>::kValue;
};
template <long long kPath>
struct Bomb<0, kPath> {
  static constexpr long long kValue = kPath;
};
"""


def bomb(text):
    return begins(BOMB)(first("if (Bomb<40, 1>::kValue == rows) return;")(text))


def manifest(line):
    return lambda text: f"{text}{line}\n"


def giant(text):
    return text.replace('block_x: "128"', 'block_x: "128" dynamic_shared_bytes: "1073741824"')


# Of submissions, made from an honest kernel: name, change of the source, of the manifest, and words of the refusal.
REFUSED = [
    ("include_absolute", begins("#include </etc/passwd>"), same, "is not relative"),
    ("include_parent", begins('#include "../../secret.h"'), same, "leads out of its folder"),
    ("include_digraph", begins("%:include <cuda_fp16.h>"), same, "digraph"),
    (
        "include_computed",
        begins("#define FILE </etc/passwd>\n#include FILE"),
        same,
        "a name in quotes or angle brackets",
    ),
    ("include_next", begins("#include_next <cuda_fp16.h>"), same, "#include_next is not allowed"),
    ("embed", begins("#embed </etc/passwd>"), same, "#embed is not allowed"),
    ("incbin", first('asm volatile(".incbin \\"/etc/passwd\\";");'), same, ".incbin is not allowed"),
    ("pre_include", same, manifest('compile_options: "--pre-include=/etc/passwd"'), "compile_options has"),
    ("include_path", same, manifest('compile_options: "--include-path=/etc"'), "compile_options has"),
]

# The same, of those that are tried: name, changes, verdict of the trial.
SUBMITTED = [
    ("incbin_in_pieces", first('asm volatile(".inc" "bin \\"/etc/passwd\\";");'), same, "COMPILE_ERROR"),
    ("nested_launch", first(NESTED), same, "COMPILE_ERROR"),
    ("template_bomb", bomb, same, "TIMEOUT"),
    ("barrier", first(DIVERGENT), same, "TIMEOUT"),
    ("illegal_address", first("*reinterpret_cast<volatile int*>(0) = 1;"), same, "CRASHED"),
    ("endless", first("for (;;) __nanosleep(1000);"), same, "TIMEOUT"),
    ("giant_shared", same, giant, "INFEASIBLE"),
    ("giant_scratch", same, manifest('scratch { name: "much" bytes: "2147483648" }'), "INFEASIBLE"),
]
