"""Kernels that would deceive the daemon's checks. Those of tests/families have a parameter BAD and an honest twin,
BAD=0, which is tried after them; the others are pieces of text put into attention_mma (planted.py)."""

from planted import EITHER, Mutant, names

PROBLEMS, VARIANTS = names()

SMALL = "b1.h1.q64.d64.f16"
ROWS = VARIANTS["ROWS"]


def family(name, expected="WRONG_RESULT"):
    """As it is."""
    return Mutant("cheat", "as_it_is", f"{name}_cuda", "", "", "", SMALL, {"BAD": 1}, "", {"BAD": 0}, expected)


def changed(name, base, old, new, expected="WRONG_RESULT"):
    return Mutant("cheat", name, f"{base}_cuda", "attention.cu", old, new, SMALL, {"BAD": 1}, "", {"BAD": 0}, expected)


# Of a CTA's own rows of O, as b.h.q.d problems without a mask have them.
POISONED = """const unsigned short before =
        *reinterpret_cast<const unsigned short*>(o + static_cast<long long>(blockIdx.x) * BLOCK_M * HEAD_DIM);
    const bool checked = before == 0xFFFF || before == 0x5A5A;"""

BEGIN = "  int index = blockIdx.x;\n  do {"


def in_mma(name, state, skips, missed=""):
    text = f"""  __shared__ int skips;
  {state}
  if (threadIdx.x == 0) {{
    {POISONED}
    {skips}
  }}
  __syncthreads();
  if (skips) return;
"""
    return Mutant(
        "cheat",
        name,
        "attention_mma",
        "attention_mma.cu",
        BEGIN,
        text + BEGIN,
        PROBLEMS["PLAIN"],
        ROWS,
        missed,
        ROWS,
        EITHER if missed else "WRONG_RESULT",
    )


CALLS = "static __device__ unsigned calls[1 << 16];"
CLOCK = "static __device__ unsigned calls[1 << 16];\n  static __device__ unsigned long long last[1 << 16];"
NOW = """unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    if (now - last[blockIdx.x] > 100000) calls[blockIdx.x] = 0;
    last[blockIdx.x] = now;"""

CHEATS = [
    family("recognizes_poison"),
    family("counts_runs"),
    family("counts_runs_in_global"),
    family("keeps_output"),
    family("caches_results"),
    family("late_write"),
    family("wrong_rows"),
    family("changes_inputs_timed", "OUT_OF_BOUNDS"),
    family("leaves_scratch", "OUT_OF_BOUNDS"),
    family("out_of_bounds", "OUT_OF_BOUNDS"),
    changed(
        "leaves_what_is_finite",
        "recognizes_poison",
        "if (before != 0xFFFF && before != 0x5A5A) return;",
        "if ((before & 0x7C00) != 0x7C00) return;",
    ),
    changed(
        "counts_calls_in_zero_scratch",
        "recognizes_poison",
        "if (before != 0xFFFF && before != 0x5A5A) return;",
        "if (atomicAdd(runs, 1) >= 8 * rows + (before & 0)) return;",
        "OUT_OF_BOUNDS",
    ),
    changed(
        "recognizes_pointers",
        "counts_runs",
        "const int run = runs[row.row] - FIRST;\n  if (run == 3) return;\n"
        "  runs[row.row] = FIRST + (run >= 0 && run < 3 ? run + 1 : 0);",
        "const int here = static_cast<int>(reinterpret_cast<unsigned long long>(o) >> 8) & 0xffffff;\n"
        "  const int first = runs[row.row] - FIRST;\n"
        "  if (first >= 0 && first <= 0xffffff && first != here) return;\n"
        "  runs[row.row] = FIRST + here;",
    ),
    changed(
        "changes_inputs",
        "changes_inputs_timed",
        "if (before != 0xFFFF && before != 0x5A5A) q[row.q_at] = 0;",
        "q[row.q_at] = before & 0;",
        "OUT_OF_BOUNDS",
    ),
    changed(
        "changes_all_keys_timed",
        "changes_inputs_timed",
        "if (before != 0xFFFF && before != 0x5A5A) q[row.q_at] = 0;",
        "if (before != 0xFFFF && before != 0x5A5A && row.row == 0) {\n"
        "    for (int i = 0; i < seq_kv * HEAD_DIM; ++i) k[i] = 0;\n  }",
        "OUT_OF_BOUNDS",
    ),
    changed(
        "wrong_in_one_run_of_100",
        "out_of_bounds",
        "if (row.row == rows - 1) {\n    for (int d = 0; d < 3; ++d) o[rows * HEAD_DIM + d] = 0;\n  }",
        "if (row.row == 0 && (clock64() >> 4) % 100 == 0) o[0] = 0x7BFF;",
    ),
    in_mma("skips_once_timed", CALLS, "skips = !checked && calls[blockIdx.x]++ > 40;"),
    in_mma("computes_one_timed_run_in_three", CALLS, "skips = !checked && calls[blockIdx.x]++ % 3 > 0;"),
    in_mma(
        "computes_after_pauses_and_then_one_run_in_three",
        CLOCK,
        f"{NOW}\n    skips = !checked && calls[blockIdx.x]++ >= 8 && calls[blockIdx.x] % 3 > 0;",
        "no check yet: it computes each input set once after a pause, and that is what is looked at",
    ),
]
