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


def arguments(launch, addresses, scratch, encode):
    """A launch's arguments as C values. A role that the problem lacks is a null pointer, and a tensor map of it zeros;
    `encode` makes any other of its fields and its tensor's address."""

    def address(kind, given):
        return scratch[given] if kind == "SCRATCH" else addresses.get(kind, 0)

    def value(kind, given):
        if kind in NUMBERS:
            return NUMBERS[kind](given)
        if kind != "TENSOR_MAP":
            return ctypes.c_uint64(address(kind, given))
        base = address(*given["base"]) if given["base"] else 0
        return encode(given, (base + given["base_offset"]) % 2**64) if base else (ctypes.c_uint64 * 16)()

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
            if launch["cluster"]:
                large = self._api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
                self.call("cuFuncSetAttribute", function, large, 1)
            found.append(function)
        return found

    def encode(self, fields, address):
        """The 128 bytes of a tensor map."""
        api = self._api
        types = {
            "U8": api.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT8,
            "F16": api.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            "BF16": api.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            "F32": api.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        }
        encoded = self.call(
            "cuTensorMapEncodeTiled",
            types[fields["element"]],
            len(fields["dims"]),
            address,
            [api.cuuint64_t(dim) for dim in fields["dims"]],
            [api.cuuint64_t(stride) for stride in fields["strides"]],
            [api.cuuint32_t(side) for side in fields["box"]],
            [api.cuuint32_t(1) for _ in fields["box"]],
            api.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            api.CUtensorMapSwizzle([0, 32, 64, 128].index(fields["swizzle_bytes"])),
            api.CUtensorMapL2promotion([0, 64, 128, 256].index(fields["l2_promotion_bytes"])),
            api.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        return (ctypes.c_uint64 * 16).from_buffer_copy(ctypes.string_at(int(encoded.getPtr()), 128))

    def launch(self, function, launch, given):
        pointers = (ctypes.c_void_p * len(given))(*map(ctypes.addressof, given))
        config = self._api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = launch["grid"]
        config.blockDimX, config.blockDimY, config.blockDimZ = launch["block"]
        config.sharedMemBytes = launch["dynamic_shared_bytes"]
        config.attrs = self._attributes(launch)
        config.numAttrs = len(config.attrs)
        self.call("cuLaunchKernelEx", config, function, ctypes.addressof(pointers), 0)

    def _attributes(self, launch):
        ids = self._api.CUlaunchAttributeID
        attributes = []
        if launch["cluster"]:
            attributes.append(self._api.CUlaunchAttribute())
            attributes[-1].id = ids.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            sides = attributes[-1].value.clusterDim
            sides.x, sides.y, sides.z = launch["cluster"]
        if launch["overlaps_previous"]:
            attributes.append(self._api.CUlaunchAttribute())
            attributes[-1].id = ids.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attributes[-1].value.programmaticStreamSerializationAllowed = 1
        return attributes


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
            device.launch(function, launch, arguments(launch, addresses, scratch, device.encode))
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
