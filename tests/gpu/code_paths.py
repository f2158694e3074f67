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
    mma("warps that skip tiles, window", "b8.h26.q256.d64.bf16.window64.sinks.lse", WARP_SKIP=1, WARPS_M=more(1)),
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
    mma("8-bit K and V", "b8.h26.q64.kv200.d64.f16.kve4m3.lse", WARPS_N=1),
    mma("8-bit K and V, bf16, teams", "b4.h20.q128.d128.bf16.kve5m2.causal", WARPS_N=more(1)),
    mma("8-bit K and V, Q in registers", "b8.h26.q64.kv200.d64.f16.kve5m2", Q_REGISTERS=1),
    mma("8-bit K and V, packed heads, splits", DECODE + ".f16.kve4m3", PACK_GQA=1, COMBINE=2),
    mma("8-bit K and V, pages", "b2.h8.kvh2.q1.kv3000.d128.bf16.kve4m3.page16.lse"),
    mma("8-bit V, converted once", "b8.h26.q64.kv200.d64.f16.kve4m3.lse", KV_CONVERT=1),
    mma("8-bit K and V, converted once", "b8.h26.q64.kv200.d64.bf16.kve5m2.lse", KV_CONVERT=2),
    mma("8-bit K and V, converted once, Q in registers", "b8.h26.q64.kv200.d64.f16.kve4m3", KV_CONVERT=2, Q_REGISTERS=1),
    mma("8-bit K and V, converted once, pages", "b8.h26.q64.kv200.d64.f16.kve4m3.page16.lse", KV_CONVERT=2),
    mma("8-bit K and V, sequences of different lengths", "b3.h2.q100.kv200.d48.f16.kve4m3.causal-br.varlen.lse"),
]

def hopper(name, problem, **must):
    return Path(name, "attention_hopper", problem, must)


THREE = "b8.h33.q192.kv400.d64.f16.lse"  # work items enough for three consumers, and for a queue of them
PAIR = "b4.h26.q128.kv300.d128.f16.lse"  # enough for two
FEW = "b2.h8.q128.kv400.d64.f16.lse"  # for one, and for teams
LONG = "b1.h2.q128.kv3000.d128.f16"  # keys to split
GROUPS = "b2.h8.kvh2.q32.kv400.d128.f16.causal-br.lse"  # heads to pack

HOPPER = [
    hopper("three consumers, in turn, from a queue", THREE, CONSUMERS=3, PINGPONG=1, STAGES=2, LAZY_RESCALE=1),
    hopper("three consumers, as they come", THREE, CONSUMERS=3, PINGPONG=0, STAGES=2, OVERLAP=1),
    hopper("three consumers, three buffers", THREE, CONSUMERS=3, STAGES=3),
    hopper("three consumers of 80 keys", "b8.h33.q192.kv200.d128.f16", CONSUMERS=3, BLOCK_N=80, PINGPONG=0),
    hopper("three consumers, one without rows", "b8.h26.q320.kv200.d64.f16", CONSUMERS=3),
    hopper("two consumers, in turn", PAIR, CONSUMERS=2, PINGPONG=1, LAZY_RESCALE=1),
    hopper("two consumers, as they come", PAIR, CONSUMERS=2, PINGPONG=0, OVERLAP=1),
    hopper("two consumers, 176 keys", PAIR, CONSUMERS=2, BLOCK_N=176),
    hopper("two consumers, one without rows", "b1.h4.q64.kv200.d256.f16.lse", CONSUMERS=2),
    hopper("one consumer", FEW, CONSUMERS=1, OVERLAP=1, LAZY_RESCALE=1),
    hopper("one consumer, three buffers", FEW, CONSUMERS=1, STAGES=3),
    hopper("one consumer, from a queue", "b8.h40.q64.kv200.d64.f16", CONSUMERS=1, OVERLAP=1),
    hopper("sums by products, three consumers", THREE, ONES=1, CONSUMERS=3),
    hopper("sums by products, two consumers", PAIR, ONES=1, CONSUMERS=2),
    hopper("sums by products, one consumer", FEW, ONES=1, CONSUMERS=1),
    hopper("sums by products, teams", FEW, ONES=1, TEAMS=2),
    hopper("sums by products, splits, sinks", LONG + ".sinks.lse", ONES=1, SPLIT=1),
    hopper("sums by products, head_dim 96, causal", "b4.h26.q128.kv300.d96.f16.causal.lse", ONES=1),
    hopper("rescaling in each step", PAIR, LAZY_RESCALE=0),
    hopper("no overlap, one consumer", FEW, OVERLAP=0, CONSUMERS=1),
    hopper("no overlap, two consumers", PAIR, OVERLAP=0, CONSUMERS=2),
    hopper("no overlap, three consumers", THREE, OVERLAP=0, CONSUMERS=3),
    hopper("teams", FEW, TEAMS=2, STAGES=2),
    hopper("teams, three buffers, causal", "b2.h8.q512.d64.f16.causal", TEAMS=2, STAGES=3),
    hopper("teams, one without keys", "b1.h4.q192.d64.bf16.causal.lse", TEAMS=2),
    hopper("causal, longest first", "b4.h26.q256.d64.f16.causal.lse", LONGEST_FIRST=1, CONSUMERS=2),
    hopper("causal, head by head, from a queue", "b8.h26.q384.d64.f16.causal", LONGEST_FIRST=0, CONSUMERS=3),
    hopper("rows that see nothing", "b1.h4.q203.kv113.d64.f16.causal-br.lse"),
    hopper("window, in turn", "b4.h26.q300.d128.f16.window70.lse", CONSUMERS=2, PINGPONG=1),
    hopper("softcap", "b2.h8.q200.d64.f16.causal.softcap30.lse", OVERLAP=1),
    hopper("sinks", "b2.h8.q100.kv130.d64.f16.sinks.lse", OVERLAP=1),
    hopper("splits, one consumer", LONG + ".lse", SPLIT=1, CONSUMERS=1),
    hopper("splits, two consumers", "b1.h4.q640.kv2600.d128.f16.causal-br.lse", SPLIT=1, CONSUMERS=2),
    hopper("splits, sinks, bshd", LONG + ".bshd.sinks.lse", SPLIT=1),
    hopper("packed heads", GROUPS, PACK_GQA=1, SPLIT=0),
    hopper("packed heads, two consumers", "b8.h64.kvh16.q32.kv300.d64.f16", PACK_GQA=1, CONSUMERS=2),
    hopper("packed heads, splits, sinks", "b1.h16.kvh2.q40.kv3000.d128.bf16.sinks.lse", PACK_GQA=1, SPLIT=1),
    hopper("heads that share keys, by themselves", "b2.h8.kvh2.q100.kv200.d64.f16", PACK_GQA=0),
    hopper("sequences of different lengths", "b3.h4.q100.kv300.d64.f16.causal-br.varlen.lse", TEAMS=1),
    hopper("sequences of different lengths, three consumers", "b8.h36.q192.kv300.d64.f16.varlen", CONSUMERS=3),
    hopper("sequences of different lengths, teams", "b3.h4.q100.kv300.d64.f16.varlen.lse", TEAMS=2),
    hopper("sequences of different lengths, packed heads", "b3.h8.kvh2.q48.kv300.d64.f16.varlen.lse", PACK_GQA=1),
    hopper("sequences of different lengths, splits", "b2.h2.q128.kv3000.d128.f16.varlen.lse", SPLIT=1),
    hopper("pages, a copy a page", "b3.h4.q100.kv300.d128.f16.page128.lse", BLOCK_N=128),
    hopper("pages, several copies a tile", "b3.h4.q100.kv300.d64.bf16.causal-br.page16.lse", TEAMS=1),
    hopper("pages, several tiles a page", "b3.h4.q100.kv600.d128.f16.varlen.page256.lse", BLOCK_N=64),
    hopper("pages, splits", "b2.h2.q128.kv3000.d128.f16.page64.lse", SPLIT=1),
    hopper("pages, packed heads, window", "b3.h8.kvh2.q48.kv700.d128.f16.window90.page8.lse", PACK_GQA=1),
    hopper("head_dim 96, bf16, bshd", "b4.h26.q128.kv300.d96.bf16.bshd", CONSUMERS=2, PINGPONG=1),
    hopper("head_dim 160", "b4.h26.q128.kv300.d160.f16.causal.lse"),
    hopper("head_dim 192, in turn", "b4.h26.q128.kv300.d192.f16", PINGPONG=1),
    hopper("head_dim 256, bf16, bshd", "b4.h26.q128.kv300.d256.bf16.causal.bshd.lse"),
    hopper("all features", "b2.h6.kvh2.q70.kv900.d128.bf16.window300.softcap20.sinks.varlen.page16.lse"),
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

ALL = MMA + HOPPER + OTHERS

# Where a path leaves a choice: several warps, which can race.
LIKE = {
    "attention_mma": {
        "BLOCK_M": 64,
        "BLOCK_N": 64,
        "WARPS_M": 4,
        "WARPS_N": 1,
        "LAZY_RESCALE": 1,
        "WARP_SKIP": 0,
        "K_STAGES": 2,
    },
    "attention_hopper": {"BLOCK_N": 64, "STAGES": 2, "OVERLAP": 1, "LAZY_RESCALE": 1, "ONES": 0, "TEAMS": 1},
    "attention_wmma": {"BLOCK_M": 32, "BLOCK_N": 64, "WARPS": 4, "KV_SPLITS": 1},
    "attention_simt": {"BLOCK_M": 32, "BLOCK_N": 32, "WARPS": 4, "KV_SPLITS": 1},
}

# The tool that must report each seeded defect of tests/families/unsanitary_cuda; none may report BAD=0.
PLANTED_PROBLEM = "b1.h2.q64.d64.f16"
PLANTED = {1: "racecheck", 2: "initcheck", 3: "synccheck", 4: "memcheck", 5: "racecheck"}
