"""One variant of each code path of the CUDA families: what sanitize.py runs. A line each; small problems, for every
access is watched. A path that the daemon has no variant of is a failure."""

import dataclasses

from choose import more


@dataclasses.dataclass(frozen=True)
class Path:
    name: str
    family: str
    problem: str
    must: dict
    expected: str = "OK"  # the daemon's verdict


def mma(name, problem, **must):
    return Path(name, "attention_mma", problem, must)


ROWS = "b8.h26.q64.kv200.d64.f16.lse"  # CTAs enough for every arrangement of warps
CAUSAL = "b4.h20.q128.d128.f16.causal"
DECODE = "b1.h8.kvh2.q4.kv3000.d128"

MMA = [
    mma("one buffer of K and V", ROWS, K_STAGES=1, V_STAGES=1, WARPS_N=1),
    mma("two buffers of V", ROWS, K_STAGES=1, V_STAGES=2, WARPS_N=1),
    mma("two buffers of K", ROWS, K_STAGES=2, V_STAGES=1, WARPS_N=1),
    mma("two buffers of both", ROWS, K_STAGES=2, V_STAGES=2, WARPS_N=1),
    mma("three buffers", ROWS, K_STAGES=3, V_STAGES=3),
    mma("Q in registers", ROWS, Q_REGISTERS=1, V_STAGES=2),
    mma("Q in registers, one buffer", ROWS, Q_REGISTERS=1, V_STAGES=1),
    mma("rescaling in each step", ROWS, LAZY_RESCALE=0),
    mma("launch bounds", ROWS, MIN_CTAS=more(1)),
    mma("two blocks of rows a warp", "b5.h40.q128.kv96.d64.f16", BLOCK_M=128, WARPS_M=4),
    mma("tiles of 256 rows", "b5.h40.q256.kv96.d64.f16", BLOCK_M=256),
    mma("teams of one warp", CAUSAL, WARPS_M=1, WARPS_N=more(2)),
    mma("teams of several warps", CAUSAL, WARPS_M=more(1), WARPS_N=more(1)),
    mma("persistent", ROWS, PERSISTENT=more(0)),
    mma("longest first", CAUSAL, LONGEST_FIRST=1, PERSISTENT=0),
    mma("persistent, longest first", CAUSAL, LONGEST_FIRST=1, PERSISTENT=more(0)),
    mma("splits joined by a launch", "b1.h1.q100.kv2100.d40.f16.lse", COMBINE=1),
    mma("splits joined by the last CTA", "b1.h1.q100.kv2100.d40.f16.bshd.lse", COMBINE=2),
    mma("splits of more tiles than SMs", "b1.h64.q256.kv1024.d8.f16.causal-br", KV_SPLITS=more(1), BLOCK_M=128),
    mma("packed heads, joined by a launch", DECODE + ".bf16.lse", PACK_GQA=1, COMBINE=1),
    mma("packed heads, joined by the last CTA", DECODE + ".f16.causal-br", PACK_GQA=1, COMBINE=2),
    mma("packed heads, no splits", "b4.h8.kvh2.q9.kv200.d64.f16.causal-br", PACK_GQA=1, KV_SPLITS=1),
    mma("heads that share keys, by themselves", "b1.h8.kvh2.q100.kv200.d64.f16", PACK_GQA=0),
    mma("window", "b2.h4.q200.d64.f16.window64.lse"),
    mma("softcap", "b2.h4.q200.d64.f16.causal.softcap30"),
    mma("rows that see nothing", "b1.h2.q203.kv113.d64.f16.causal-br.lse"),
    mma("head_dim 40", "b1.h2.q100.kv130.d40.f16"),
    mma("head_dim 256, bf16, bshd", "b1.h2.q65.kv130.d256.bf16.bshd"),
    mma("sinks", "b2.h4.q100.kv130.d64.f16.sinks.lse"),
    mma("sinks, splits", DECODE + ".f16.sinks", KV_SPLITS=more(1)),
    mma("sequences of different lengths", "b3.h2.q100.kv200.d64.f16.causal-br.varlen.lse"),
    mma("sequences of different lengths, splits", "b2.h8.kvh2.q4.kv3000.d128.f16.varlen", KV_SPLITS=more(1)),
    mma("pages", "b2.h4.q50.kv200.d64.f16.page16.lse"),
    mma("pages, more rows a copy than keys", "b8.h26.q64.kv200.d80.f16.page32", BLOCK_N=32, WARPS_M=4),
    mma("pages, splits", "b2.h8.kvh2.q1.kv3000.d128.f16.page16", KV_SPLITS=more(1)),
    mma("sequences of different lengths, persistent", "b8.h26.q64.kv200.d64.f16.varlen.lse", PERSISTENT=more(0)),
    mma("sequences of different lengths, Q in registers", "b8.h26.q64.kv200.d64.f16.sinks.varlen", Q_REGISTERS=1),
    mma("pages, four warps along the rows", "b8.h26.q64.kv200.d64.f16.page16", WARPS_M=4, WARPS_N=1),
    mma("pages, three buffers", "b8.h26.q64.kv200.d64.bf16.page1.lse", K_STAGES=3, V_STAGES=3),
    mma("pages, sequences of different lengths", "b3.h2.q50.kv200.d64.f16.causal-br.varlen.page48"),
]

PLAIN = "b2.h4.q200.d64.f16.causal.lse"
MANY = "b8.h26.q64.kv200.d64.f16"

OTHERS = [
    Path(name, family, problem, must, "WRONG_RESULT" if "ACC" in must else "OK")  # fp16 sums miss the tolerance
    for family in ("attention_wmma", "attention_simt")
    for name, problem, must in [
        ("plain loads", PLAIN, {"CP_ASYNC_STAGES": 0, "SWIZZLE": 0}),
        ("narrow loads", PLAIN, {"VEC": 4}),
        ("one buffer", PLAIN, {"CP_ASYNC_STAGES": 1, "SWIZZLE": 1}),
        ("a ring of two", PLAIN, {"CP_ASYNC_STAGES": 2, "SWIZZLE": 0}),
        ("a ring of three", PLAIN, {"CP_ASYNC_STAGES": 3, "SWIZZLE": 1}),
        ("splits", "b1.h2.q70.kv500.d64.f16.lse", {"KV_SPLITS": more(1)}),
        ("persistent", MANY, {"PERSISTENT": more(0)}),
        ("launch bounds", MANY, {"MIN_CTAS": more(1)}),
        ("fp16 accumulation", PLAIN, {"ACC": 16}),
        ("bf16, bshd, head_dim 96", "b1.h4.kvh2.q70.kv90.d96.bf16.causal-br.bshd", {}),
    ]
]

ALL = MMA + OTHERS

# Where a path leaves a choice: several warps, which can race.
LIKE = {
    "attention_mma": {"BLOCK_M": 64, "BLOCK_N": 64, "WARPS_M": 4, "WARPS_N": 1, "LAZY_RESCALE": 1, "K_STAGES": 2},
    "attention_wmma": {"BLOCK_M": 32, "BLOCK_N": 64, "WARPS": 4, "KV_SPLITS": 1},
    "attention_simt": {"BLOCK_M": 32, "BLOCK_N": 32, "WARPS": 4, "KV_SPLITS": 1},
}

# The tool that must report each seeded defect of tests/families/unsanitary_cuda; none may report BAD=0.
PLANTED_PROBLEM = "b1.h2.q64.d64.f16"
PLANTED = {1: "racecheck", 2: "initcheck", 3: "synccheck", 4: "memcheck", 5: "racecheck"}
