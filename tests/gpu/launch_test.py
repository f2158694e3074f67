"""The runner's launches, on a device that only writes down what it is asked for."""

import ctypes
import json
import pathlib
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "golden")]
import jobs
import launch
from golden import golden

RECIPE = types.SimpleNamespace(
    scratch=[
        types.SimpleNamespace(bytes=0, zero_before_first_run=False),
        types.SimpleNamespace(bytes=4, zero_before_first_run=True),
    ],
    launches=[
        types.SimpleNamespace(
            entry="attention",
            grid=(3, 1, 1),
            block=(32, 1, 1),
            dynamic_shared_bytes=1024,
            cluster=None,
            overlaps_previous=False,
            args=[
                types.SimpleNamespace(kind=kind, value=value)
                for kind, value in [
                    ("Q", 0),
                    ("O", 0),
                    ("LSE", 0),
                    ("SCRATCH", 0),
                    ("SCRATCH", 1),
                    ("I32", -3),
                    ("F32", 0.5),
                ]
            ],
        )
    ],
)


class FakeDevice:
    """Addresses are 100, 200, ...; every read gives `output`."""

    def __init__(self, output=b"\0\0"):
        self.output = output
        self.buffers, self.launches = [], []

    def buffer(self, size, data=None, zero=False):
        if size == 0:
            return 0
        self.buffers.append((size, data is not None, zero))
        return 100 * len(self.buffers)

    def functions(self, image, launches):
        return [f"{each['entry']} of {image.decode()}" for each in launches]

    def launch(self, function, launch, given):
        self.launches.append((function, launch["grid"], given))

    def encode(self, fields, address):
        return fields["box"], address

    def call(self, name):
        assert name == "cuCtxSynchronize"

    def read(self, address, size):
        return self.output * (size // len(self.output))


def fake_bindings(calls):
    """As much of cuda.bindings.driver as encode() uses; what is called goes to `calls`."""
    names = ("type", "rank", "address", "dims", "strides", "box", "steps", "interleave", "swizzle", "promotion", "fill")
    memory = ctypes.create_string_buffer(bytes([7]) * 128, 128)

    def encode_tiled(*given):
        calls.append(dict(zip(names, given, strict=True)))
        return 0, types.SimpleNamespace(getPtr=lambda: ctypes.addressof(memory))

    return types.SimpleNamespace(
        cuTensorMapEncodeTiled=encode_tiled,
        cuuint32_t=int,
        cuuint64_t=int,
        # cuda.h's numbers.
        CUtensorMapDataType=types.SimpleNamespace(
            CU_TENSOR_MAP_DATA_TYPE_UINT8=0,
            CU_TENSOR_MAP_DATA_TYPE_FLOAT16=6,
            CU_TENSOR_MAP_DATA_TYPE_FLOAT32=7,
            CU_TENSOR_MAP_DATA_TYPE_BFLOAT16=9,
        ),
        CUtensorMapInterleave=types.SimpleNamespace(CU_TENSOR_MAP_INTERLEAVE_NONE=0),
        CUtensorMapSwizzle=int,
        CUtensorMapL2promotion=int,
        CUtensorMapFloatOOBfill=types.SimpleNamespace(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE=0),
    )


class Encode(unittest.TestCase):
    def test_the_driver_is_called_as_the_daemon_calls_it(self):
        for case in golden("tensor_maps")["calls"]:
            calls = []
            device = launch.Device.__new__(launch.Device)
            device._api = fake_bindings(calls)
            encoded = device.encode(case["map"], case["call"]["address"])
            self.assertEqual(bytes(encoded), bytes([7]) * 128)
            self.assertEqual(calls, [case["call"]])


class Launch(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        artifact = pathlib.Path(self.directory.name, "artifact")
        artifact.write_bytes(b"code")
        self.job = json.loads(json.dumps(jobs.job("b1.h1.q2.d8.f16", "family:A=1", RECIPE, artifact)))

    def test_arguments_are_in_the_recipes_order_and_absent_buffers_null(self):
        device = FakeDevice()
        launch.run(self.job, 1, device)
        function, grid, given = device.launches[0]
        self.assertEqual((function, grid), ("attention of code", [3, 1, 1]))
        # Q, K and V come first, then O and the one scratch buffer that has bytes.
        self.assertEqual([value.value for value in given], [100, 400, 0, 0, 500, -3, 0.5])
        self.assertEqual([type(value) for value in given[-2:]], [ctypes.c_int32, ctypes.c_float])

    def test_a_tensor_map_is_of_its_buffers_address_and_of_a_null_buffer_zeros(self):
        def tensor_map(base):
            numbers = {"base_offset": -16, "element": "F16", "dims": (8, 2), "strides": (16,), "box": (8, 2)}
            return types.SimpleNamespace(base=base, swizzle_bytes=0, l2_promotion_bytes=0, **numbers)

        bases = [types.SimpleNamespace(kind="K", value=0), types.SimpleNamespace(kind="LSE", value=0), None]
        given = [types.SimpleNamespace(kind="TENSOR_MAP", value=tensor_map(base)) for base in bases]
        one = json.loads(json.dumps({"args": [jobs.argument(arg) for arg in given]}))
        device = FakeDevice()
        k, lse, none = launch.arguments(one, {"K": 200}, [], device.encode)
        self.assertEqual(k, ([8, 2], 184))
        self.assertEqual((bytes(lse), bytes(none)), (bytes(128), bytes(128)))

    def test_scratch_is_zeroed_where_the_recipe_says_so_and_inputs_are_filled(self):
        device = FakeDevice()
        launch.run(self.job, 1, device)
        self.assertEqual(device.buffers, [(32, True, False)] * 3 + [(32, False, False), (4, False, True)])

    def test_runs_share_their_buffers(self):
        device = FakeDevice()
        written, _ = launch.run(self.job, 3, device)
        self.assertEqual(len(written), 3)
        first, *_, last = ([value.value for value in given] for _, _, given in device.launches)
        self.assertEqual(first, last)


if __name__ == "__main__":
    unittest.main()
