"""Codes of attention_mma: compiled by NVRTC on all cores, from any tree of kernel sources.

codes.py same OLD_TREE NEW_TREE     which of a sample of codes differ, in PTX and as compiled (kernels_src folders)
codes.py report TREE PROBLEM CODE ...   registers and spills for sm_89; CODE as "BLOCK_M=128 BLOCK_N=32,64"
"""

import hashlib
import itertools
import multiprocessing
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "client/python"), str(ROOT / "tests/gpu")]
import nvrtc

PARAMETERS = {
    "BLOCK_M": 128,
    "BLOCK_N": 64,
    "WARPS_M": 4,
    "WARPS_N": 1,
    "K_STAGES": 2,
    "V_STAGES": 2,
    "Q_REGISTERS": 0,
    "LAZY_RESCALE": 1,
    "MIN_CTAS": 1,
    "PACK_GQA": 0,
    "KV_CONVERT": 0,
    "WARP_SKIP": 0,
    "KV_SPLITS": 1,
    "COMBINE": 0,
    "LONGEST_FIRST": 0,
}
LAUNCH_TIME = {"KV_SPLITS", "COMBINE", "LONGEST_FIRST"}


def codes(text):
    """Every combination of the values in "BLOCK_M=64,128 BLOCK_N=32"; the rest as in PARAMETERS."""
    given = dict(word.split("=") for word in text.split())
    if unknown := given.keys() - PARAMETERS.keys():
        raise SystemExit(f"{text}: no parameter {', '.join(unknown)}; there are {', '.join(PARAMETERS)}")
    values = [[int(value) for value in each.split(",")] for each in given.values()]
    for chosen in itertools.product(*values):
        code = {**PARAMETERS, **dict(zip(given, chosen))}
        if code["KV_SPLITS"] > 1 and "COMBINE" not in given:
            code["COMBINE"] = 2
        yield code


def name(code):
    text = "{BLOCK_M}x{BLOCK_N} {WARPS_M}x{WARPS_N} K{K_STAGES}V{V_STAGES}".format(**code)
    words = ("Q_REGISTERS", "MIN_CTAS", "PACK_GQA", "KV_CONVERT", "WARP_SKIP", "KV_SPLITS", "COMBINE", "LONGEST_FIRST")
    text += "".join(f" {word}={code[word]}" for word in words if code[word] != PARAMETERS[word])
    return text + ("" if code["LAZY_RESCALE"] else " LAZY_RESCALE=0")


def defines(problem):
    """What of an attune.problem.Problem the code depends on, as the manifest has it."""
    return {
        "HEAD_DIM": problem.head_dim,
        "IS_BF16": int(problem.dtype == "bf16"),
        "KV_DTYPE": {"e4m3": 1, "e5m2": 2}.get(problem.kv_dtype, 0),
        "MASK": {"none": 0, "window": 2}.get(problem.mask, 1),
        "SOFTCAP": int(problem.softcap > 0),
        "SINKS": int(problem.sinks),
        "VARLEN": int(problem.varlen),
        "PAGE_SIZE": problem.page_size,
    }


def shared_bytes(code):
    bytes_of_key = 1 if code["KV_DTYPE"] else 2
    step = 32 if code["KV_DTYPE"] else 16
    dim = -(-code["HEAD_DIM"] // step) * step
    query, buffer = code["BLOCK_M"] * 2 * dim, code["BLOCK_N"] * bytes_of_key * dim
    warps = code["WARPS_M"] * code["WARPS_N"]
    row_blocks = code["BLOCK_M"] // 16 // code["WARPS_M"]
    wide = code["BLOCK_N"] * 2 * dim if code["KV_CONVERT"] else 0
    kept = max(0, query - max(buffer, wide)) if code["Q_REGISTERS"] else query
    tile = kept + (code["K_STAGES"] + code["V_STAGES"]) * buffer + code["KV_CONVERT"] * wide
    merge = warps // 2 * row_blocks * (dim // 8 + 1) * 512 if code["WARPS_N"] > 1 else 0
    return max(tile, merge, warps * -(-code["HEAD_DIM"] // 128) * 512)


def compile_one(tree, code, architecture):
    """(cubin, PTX, log): with options as the daemon's."""
    source = pathlib.Path(tree).resolve() / "attention_mma/attention_mma.cu"
    given = {name: value for name, value in code.items() if name not in LAUNCH_TIME}
    try:
        includes = (source.parent, source.parents[1])
        return nvrtc.compiled(source, includes, given, architecture, ["--ptxas-options=-v"])
    except ValueError as error:
        raise RuntimeError(f"{code}: {error}") from None


def resources(log):
    """(registers, bytes spilled) of the main kernel."""
    part = log[log.index("Compiling entry function 'attention_mma'") :]
    spilled = int(re.search(r"(\d+) bytes spill stores", part)[1])
    return int(re.search(r"Used (\d+) registers", part)[1]), spilled


def cubin(tree, code, architecture, cache=None):
    """(cubin, registers, spilled). `cache`: a folder that keeps cubins."""
    digest = hashlib.sha256()
    for path in sorted(
        path for folder in ("attention_mma", "common") for path in pathlib.Path(tree, folder).glob("*.cu*")
    ):
        digest.update(path.read_bytes())
    digest.update(repr(([item for item in code.items() if item[0] not in LAUNCH_TIME], architecture)).encode())
    kept = cache and pathlib.Path(cache, digest.hexdigest()[:32])
    if kept and kept.exists():
        registers, spilled, image = kept.read_bytes().split(b" ", 2)
        return image, int(registers), int(spilled)
    image, _, log = compile_one(tree, code, architecture)
    registers, spilled = resources(log)
    if kept:
        kept.write_bytes(b"%d %d %s" % (registers, spilled, image))
    return image, registers, spilled


def in_parallel(function, arguments):
    with multiprocessing.get_context("fork").Pool() as pool:  # before this process opens a device
        return pool.starmap(function, arguments, chunksize=1)


# Codes that between them reach every file of the family.
SAMPLE = [
    ("b4.h16.q4096.d128.f16", "BLOCK_M=128 BLOCK_N=64"),
    ("b4.h16.q4096.d128.f16", "BLOCK_M=64 BLOCK_N=64 K_STAGES=1,3 V_STAGES=1"),
    ("b4.h16.q4096.d128.f16.causal", "BLOCK_M=128 BLOCK_N=32 K_STAGES=1,2 V_STAGES=1"),
    ("b4.h16.q4096.d128.bf16.causal", "BLOCK_M=128 BLOCK_N=32 LAZY_RESCALE=0,1"),
    ("b4.h16.q4096.d64.f16", "BLOCK_M=128,256 WARPS_M=8"),
    ("b4.h16.q4096.d64.f16.causal", "BLOCK_M=128 BLOCK_N=128 Q_REGISTERS=0,1 V_STAGES=1"),
    ("b4.h16.q4096.d64.bf16.window128.sinks", "BLOCK_M=64 BLOCK_N=64"),
    ("b2.h8.q512.d64.f16", "BLOCK_M=64 BLOCK_N=128 WARPS_N=2"),
    ("b2.h8.q512.d80.f16.causal", "BLOCK_M=64 BLOCK_N=32 MIN_CTAS=3"),
    ("b4.h16.q2048.d96.bf16.softcap50.causal", "BLOCK_M=64 BLOCK_N=48"),
    ("b2.h16.q2048.d256.f16.causal", "BLOCK_M=64 BLOCK_N=32"),
    ("b8.h32.kvh8.q1.kv4096.d128.f16", "BLOCK_M=16 BLOCK_N=128 WARPS_M=1 WARPS_N=4 PACK_GQA=1"),
    ("b8.h32.kvh8.q1.kv4096.d128.bf16.page16", "BLOCK_M=16 BLOCK_N=64 WARPS_M=1 WARPS_N=4 PACK_GQA=1"),
    ("b8.h32.kvh8.q1.kv4096.d128.bf16.page64.sinks.causal-br", "BLOCK_M=16 BLOCK_N=64 WARPS_M=1 WARPS_N=4 PACK_GQA=1"),
    ("b8.h32.kvh8.q4096.d128.f16.varlen", "BLOCK_M=128 BLOCK_N=64 K_STAGES=1 V_STAGES=1"),
    ("b8.h32.kvh8.q4096.d64.bf16.causal.varlen.sinks", "BLOCK_M=128 BLOCK_N=64"),
    ("b8.h16.q512.d40.f16.varlen.page32.causal-br", "BLOCK_M=64 BLOCK_N=64"),
    ("b4.h16.q1024.d64.f16.kve5m2.causal", "BLOCK_M=64 BLOCK_N=64"),
    ("b8.h32.kvh8.q1.kv4096.d128.bf16.kve4m3", "BLOCK_M=16 BLOCK_N=128 WARPS_M=1 WARPS_N=4 PACK_GQA=1"),
]


def sample():
    from attune.problem import Problem

    for text, code_text in SAMPLE:
        for code in codes(code_text):
            yield text, {**code, **defines(Problem.parse(text))}


def _code(tree, code):
    return compile_one(tree, code, "sm_89")[:2]


def same(old, new):
    """Prints the codes whose PTX differs, and whether what ptxas makes of it does. How many cubins differ."""
    wanted = list(sample())
    found = in_parallel(_code, [(tree, code) for _, code in wanted for tree in (old, new)])
    ptx = cubins = 0
    for (text, code), before, after in zip(wanted, found[::2], found[1::2]):
        if before[1] == after[1]:
            continue
        ptx += 1
        cubins += before[0] != after[0]
        print(f"{text} {name(code)}: PTX differs, the cubin {'too' if before[0] != after[0] else 'does not'}")
    print(f"{len(wanted)} codes: {ptx} differ in PTX, {cubins} in the cubin")
    return cubins


def report(tree, problem, texts):
    from attune.problem import Problem

    wanted = [{**code, **defines(Problem.parse(problem))} for text in texts for code in codes(text)]
    found = in_parallel(cubin, [(tree, code, "sm_89") for code in wanted])
    for code, (_, registers, spilled) in zip(wanted, found):
        print(f"{problem} {name(code)}: {registers} registers, {spilled} bytes spilled, {shared_bytes(code)} shared")
    return 0


def main():
    match sys.argv[1:]:
        case ["same", old, new]:
            sys.exit(same(old, new) > 0)
        case ["report", tree, problem, *texts] if texts:
            sys.exit(report(tree, problem, texts))
    sys.exit(__doc__)


if __name__ == "__main__":
    main()
