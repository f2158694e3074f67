"""Runs one variant by itself, for a tool that watches the process: compute-sanitizer, Nsight Compute.

    launch.py JOB.json [--runs N] [--unchecked]

JOB.json is made by jobs.py. Needs cuda-bindings and nothing else: all that a process loads is watched, too.
Every buffer is an allocation of its own, of exactly its size. Fails, unless told not to look, when the output has a
NaN, or when two runs differ.
"""

import argparse
import ctypes
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import buffers

NUMBERS = {"I32": ctypes.c_int32, "I64": ctypes.c_int64, "F32": ctypes.c_float}


def arguments(launch, addresses, scratch):
    """A launch's arguments as C values. A role that the problem lacks is a null pointer."""

    def value(kind, given):
        if kind in NUMBERS:
            return NUMBERS[kind](given)
        return ctypes.c_uint64(scratch[given] if kind == "SCRATCH" else addresses.get(kind, 0))

    return [value(*arg) for arg in launch["args"]]


class Device:
    """GPU 0, through the driver."""

    def __init__(self):
        from cuda.bindings import driver

        self._api = driver
        self.call("cuInit", 0)
        context = self.call("cuDevicePrimaryCtxRetain", self.call("cuDeviceGet", 0))
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *given):
        result, *values = getattr(self._api, name)(*given)
        if result:
            sys.exit(f"{name}: {self._api.cuGetErrorName(result)[1].decode()}")
        return values[0] if values else None

    def buffer(self, size, data=None, zero=False):
        """Its address; 0 when it has no bytes."""
        if size == 0:
            return 0
        address = int(self.call("cuMemAlloc", size))
        if data is not None:
            self.call("cuMemcpyHtoD", address, ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value, size)
        elif zero:
            self.call("cuMemsetD8", address, 0, size)
        return address

    def read(self, address, size):
        data = (ctypes.c_char * size)()
        self.call("cuMemcpyDtoH", ctypes.addressof(data), address, size)
        return data.raw

    def functions(self, image, launches):
        module = self.call("cuModuleLoadData", image if image[:4] == b"\x7fELF" else image + b"\0")
        attribute = self._api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        found = []
        for launch in launches:
            function = self.call("cuModuleGetFunction", module, launch["entry"].encode())
            self.call("cuFuncSetAttribute", function, attribute, launch["dynamic_shared_bytes"])
            found.append(function)
        return found

    def launch(self, function, launch, given):
        pointers = (ctypes.c_void_p * len(given))(*map(ctypes.addressof, given))
        shape = (*launch["grid"], *launch["block"], launch["dynamic_shared_bytes"])
        self.call("cuLaunchKernel", function, *shape, 0, ctypes.addressof(pointers), 0)


def run(job, runs, device):
    """What the kernel wrote, by role, of each run."""
    problem = buffers.Problem(job["problem"])
    inputs, outputs = buffers.make(problem)
    addresses = {role: device.buffer(len(data), data) for role, data in inputs.items()}
    addresses |= {role: device.buffer(size) for role, size in outputs.items()}
    scratch = [device.buffer(each["bytes"], zero=each["zero"]) for each in job["scratch"]]
    functions = device.functions(pathlib.Path(job["artifact"]).read_bytes(), job["launches"])
    written = []
    for _ in range(runs):
        for function, launch in zip(functions, job["launches"]):
            device.launch(function, launch, arguments(launch, addresses, scratch))
        device.call("cuCtxSynchronize")
        written.append({role: device.read(addresses[role], size) for role, size in outputs.items()})
    return written, problem


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--unchecked", action="store_true", help="do not look at the output: it is large")
    options = parser.parse_args()
    written, problem = run(json.loads(options.job.read_text()), options.runs, Device())
    if options.unchecked:
        return
    if any(run != written[0] for run in written):
        sys.exit("two runs differ")
    for role, data in written[0].items():
        if buffers.has_nan(data, role, problem.is_bf16):
            sys.exit(f"{role} has a NaN")


if __name__ == "__main__":
    main()
