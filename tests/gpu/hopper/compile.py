"""Codes of attention_hopper: compiled by NVRTC on all cores, those that spill or serialize wgmma left out."""

import ctypes
import functools
import itertools
import math
import multiprocessing
import pathlib
import re

KERNELS = pathlib.Path(__file__).resolve().parents[3] / "kernels_src"
TOOLKIT = pathlib.Path("/usr/local/cuda")
PARAMETERS = {
    "CONSUMERS": 2,
    "BLOCK_N": 128,
    "STAGES": 2,
    "PINGPONG": 1,
    "OVERLAP": 1,
    "LAZY_RESCALE": 1,
    "ONES": 0,
    "TEAMS": 1,
    "PACK_GQA": 0,
    "SPLIT": 0,
    "KV_SPLITS": 1,
}
LAUNCH_TIME = {"KV_SPLITS"}


@functools.cache
def _nvrtc():
    folder = TOOLKIT / "lib64"
    return ctypes.CDLL(str(folder / "libnvrtc.so") if folder.exists() else "libnvrtc.so.13")


def variants(texts):
    """{name: parameters} of every combination of values in each text, "CONSUMERS=2,3 BLOCK_N=64,80,128"."""
    found = {}
    for text in texts:
        given = dict(word.split("=") for word in text.split())
        if unknown := given.keys() - PARAMETERS.keys():
            raise SystemExit(f"{text}: no parameter {', '.join(unknown)}; there are {', '.join(PARAMETERS)}")
        values = [[int(value) for value in given[name].split(",")] for name in given]
        for chosen in itertools.product(*values):
            parameters = {**PARAMETERS, **dict(zip(given, chosen))}
            parameters["PINGPONG"] &= parameters["OVERLAP"] & (parameters["CONSUMERS"] > 1) & (parameters["TEAMS"] == 1)
            if (parameters["SPLIT"] > 0) != (parameters["KV_SPLITS"] > 1):
                continue
            name = "c{CONSUMERS}n{BLOCK_N}s{STAGES}p{PINGPONG}o{OVERLAP}l{LAZY_RESCALE}".format(**parameters)
            name += "e{ONES}t{TEAMS}g{PACK_GQA}k{KV_SPLITS}".format(**parameters)
            found[name] = parameters
    return found


def defines(problem):
    """What of an attune.problem.Problem the code depends on."""
    return {
        "HEAD_DIM": problem.head_dim,
        "IS_BF16": int(problem.dtype == "bf16"),
        "MASK": {"none": 0, "window": 2}.get(problem.mask, 1),
        "SOFTCAP": int(problem.softcap > 0),
        "SINKS": int(problem.sinks),
        "VARLEN": int(problem.varlen),
        "PAGE_SIZE": problem.page_size,
    }


def piece(code):
    """Keys of a copy: as many as a tile's pieces may have that do not lie in two pages."""
    return math.gcd(code["PAGE_SIZE"], code["BLOCK_N"])


def block_m(code):
    return 64 * code["CONSUMERS"] // code["TEAMS"]


def shared_bytes(code):
    rows = block_m(code) + 2 * code["STAGES"] * code["BLOCK_N"]
    merge = 512 * (code["HEAD_DIM"] // 2 + 4) if code["TEAMS"] > 1 else 0
    ones = code["STAGES"] * code["BLOCK_N"] * (128 if code["HEAD_DIM"] % 64 == 0 else 64) if code["ONES"] else 0
    return 2 * code["HEAD_DIM"] * rows + ones + merge + 16 * (block_m(code) // 64 + 2 * code["STAGES"] + 2) + 8


def _text(nvrtc, program, what):
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw[: size.value]


def compile_one(code):
    """(cubin or None, why not)."""
    nvrtc = _nvrtc()
    source = KERNELS / "attention_hopper/attention_hopper.cu"
    options = ["--gpu-architecture=sm_90a", "--std=c++17", "--device-as-default-execution-space", "--ptxas-options=-v"]
    options += [f"--include-path={folder}" for folder in (source.parent, KERNELS, TOOLKIT / "include")]
    options += [f"-D{name}={value}" for name, value in code.items() if name not in LAUNCH_TIME]
    options.append(f"-DPIECE={piece(code)}")
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), b"attention_hopper.cu", 0, None, None)
    result = nvrtc.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    )
    log = _text(nvrtc, program, "ProgramLog").decode()
    complaint = re.search(r".*(?:error|fatal|\(C75\d\d\)|[1-9]\d* bytes spill stores).*", log)
    if result or complaint:
        return None, complaint.group().strip() if complaint else log
    return _text(nvrtc, program, "CUBIN"), ""


def compile_all(codes):
    """Cubins of a list of codes, None for those that are left out, each with a line that says why."""

    def key(code):
        return tuple((name, value) for name, value in code.items() if name not in LAUNCH_TIME)

    fit = list({key(code): code for code in codes if shared_bytes(code) <= 227 * 1024}.values())
    with multiprocessing.get_context("fork").Pool() as pool:  # before this process opens the device
        done = dict(zip(map(key, fit), pool.map(compile_one, fit, chunksize=1)))
    cubins = []
    for code in codes:
        cubin, why = done.get(key(code), (None, "more shared memory than a CTA may have"))
        if why:
            print(f"left out: {' '.join(f'{k}={v}' for k, v in code.items())}: {why[:160]}")
        cubins.append(cubin)
    return cubins
