#!/usr/bin/env python3
"""Has Kernel Tuner tune a list of variants: kernel_tuner_run.py SPACE.json RESULT.json --backend cupy|nvcuda

SPACE.json is made by configurations.py; beside_kernel_tuner.py runs this, in a process of its own, so that nothing is
warm but what the environment's caches hold. Kernel Tuner runs as it is, with 7 iterations and brute force, but for

- the opt-in that CUDA wants for more than 48 KiB of dynamic shared memory, which its backends do not make;
- a limit of time, which its brute force does not take: RESULT.json then has what was tried until then;
- a wrong result, which ends its tuning: it is noted with the variant instead.

One set of inputs is checked, once, to the daemon's tolerance against an fp32 reference; the output stays on the device
where the back end takes arrays that are there (cupy). The daemon checks five, twice each, and again what it has timed.
"""

import argparse
import importlib
import importlib.metadata
import json
import math
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import configurations
import nvrtc

ITERATIONS = 7  # Kernel Tuner's default
BACKENDS = {"cupy": "CupyFunctions", "nvcuda": "CudaFunctions"}


def opting_in(name):
    """Makes Kernel Tuner's backend ask for the shared memory that a launch needs."""
    module = importlib.import_module(f"kernel_tuner.backends.{name}")

    class Backend(getattr(module, BACKENDS[name])):
        def copy_shared_memory_args(self, smem_args):
            super().copy_shared_memory_args(smem_args)
            if name == "cupy":
                self.func.max_dynamic_shared_size_bytes = smem_args["size"]
                return
            attribute = module.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            module.cuda_error_check(*module.driver.cuFuncSetAttribute(self.func, attribute, smem_args["size"]))

    setattr(module, BACKENDS[name], Backend)


class InOrder:
    """Every variant in the list's order, as Kernel Tuner's brute force has it, until the time is up."""

    @staticmethod
    def tune(searchspace, runner, tuning_options):
        return [row for row in runner.run(searchspace.sorted_list(), tuning_options) if row]


def judge(why_wrong_of, clear):
    """An observer that is also the check: `why_wrong_of(results)` says why they are wrong, empty when they are right;
    `clear()` makes what the next variant leaves unwritten show."""
    from kernel_tuner.observers.observer import BenchmarkObserver

    class Judge(BenchmarkObserver):
        why = "not checked"

        def verify(self, answer, results, atol=None):
            self.why = why_wrong_of(results)
            return True

        def get_results(self):
            """After the variant was timed: these stand in its row."""
            why, self.why = self.why, "not checked"
            clear()
            return {"right": not why, "why": why}

    return Judge()


class Problem:
    """Inputs, the reference, and an output that is NaN until it is written."""

    def __init__(self, text):
        import cupy
        import torch
        from attune.problem import Problem as Parsed
        from attune_bench import inputs, reference

        problem = Parsed.of(text)
        tensors = inputs.make_inputs(problem, seed=1)
        self.dtype = problem.dtype
        self.reference = reference.fp32_attention(problem, tensors)
        plain = reference.naive_attention(problem, tensors)
        self.plain_error = (plain.float() - self.reference).abs().max().item()
        self.buffers = {role: cupy.asarray(getattr(tensors, role.lower())) for role in "QKV"}
        self.buffers["O"] = cupy.full(self.reference.shape, math.nan, self.buffers["Q"].dtype)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    def why_wrong(self, output):
        import torch
        from attune_bench.tolerance import errors_of, why_wrong

        found = torch.as_tensor(output, device="cuda").reshape(self.reference.shape).float()
        return why_wrong(self.dtype, errors_of(self.dtype, found, self.reference, self.plain_error))


def tune(space, backend, limit_s):
    """(rows, environment) of Kernel Tuner, and how long it took in all."""
    import cupy
    import kernel_tuner
    import numpy
    from kernel_tuner.accuracy import Tunable

    problem = Problem(space["problem"])
    on_device = backend == "cupy"
    place = (lambda array: array) if on_device else cupy.asnumpy
    output = configurations.position(space, "O")
    checked = judge(
        lambda results: problem.why_wrong(results[output]),
        lambda: problem.buffers["O"].fill(math.nan) if on_device else None,
    )
    arguments = configurations.arguments(
        space,
        {role: place(array) for role, array in problem.buffers.items()},
        {"I32": numpy.int32, "I64": numpy.int64, "F32": numpy.float32, "NULL": numpy.uint64},
        lambda size: place(cupy.zeros(size, numpy.uint8)),
        Tunable,
    )
    # With an answer Kernel Tuner copies what it is for from host to device and back; without one, all arrays, which is
    # cheap where they are on the device.
    answer = None if on_device else [arguments[i] if i == output else None for i in range(len(arguments))]
    options = configurations.compiler_options(space, nvrtc.toolkit())
    begin = time.monotonic()
    rows, environment = kernel_tuner.tune_kernel(
        space["entry"],
        space["source"],
        configurations.of_variant([tuple(grid) for grid in space["grids"]]),
        arguments,
        configurations.tune_params(space),
        grid_div_x=[],
        grid_div_y=[],
        grid_div_z=[],
        restrictions=[configurations.restriction(space)],
        answer=answer,
        verify=checked.verify,
        lang=backend.upper(),
        smem_args={"size": configurations.of_variant(space["shared_bytes"])},
        # cupy gives this one by itself.
        compiler_options=options if on_device else [*options, "--device-as-default-execution-space"],
        defines=configurations.define_functions(space),
        iterations=ITERATIONS,
        observers=[checked],
        strategy=InOrder(),
        strategy_options={"time_limit": limit_s},
        quiet=True,
    )
    return rows, environment, time.monotonic() - begin


def versions():
    import cupy

    nvrtc_version = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
    return {
        "Kernel Tuner": importlib.metadata.version("kernel_tuner"),
        "CuPy": cupy.__version__,
        "NVRTC": nvrtc_version,
    }


def plain_row(space, row):
    """What a report needs of Kernel Tuner's row; times in microseconds, durations in seconds."""
    times = [1000 * float(each) for each in row.get("times", [])]
    return {
        "variant": space["variants"][row[configurations.VARIANT]],
        "right": bool(row.get("right", False)),
        "why": row.get("why", ""),
        "error": str(row["__error__"]) if "__error__" in row else "",
        "time_us": 1000 * float(row["time"]) if times else None,
        "least_us": min(times, default=None),
        **{f"{what}_s": row[f"{what}_time"] / 1000 for what in ("compile", "verification", "benchmark", "framework")},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("space", type=pathlib.Path)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--backend", choices=BACKENDS, required=True)
    parser.add_argument("--limit", type=float, default=240, help="no variant begins later than this many seconds")
    options = parser.parse_args()
    space = json.loads(options.space.read_text())
    opting_in(options.backend)
    rows, environment, seconds = tune(space, options.backend, options.limit)
    found = {
        "backend": options.backend,
        "versions": versions(),
        "iterations": ITERATIONS,
        "device": environment["device_name"],
        "seconds": seconds,
        "rows": [plain_row(space, row) for row in rows],
    }
    options.result.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
