"""One code of attention_hopper bound to tensors, launched as its manifest says."""

import ctypes
import math

import torch
from compile import shared_bytes

LOG2E = 1.44269504088896341
GUARD = 4096  # elements before and behind O
DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
MAP_TYPE = {torch.float16: 6, torch.bfloat16: 9}  # CU_TENSOR_MAP_DATA_TYPE_FLOAT16, _BFLOAT16
MAP_SWIZZLE = {64: 3, 32: 2}  # columns of a panel: CU_TENSOR_MAP_SWIZZLE_128B, _64B
L2_256B = 3

_cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    result = getattr(_cuda, name)(*arguments)
    if result:
        text = ctypes.c_char_p()
        _cuda.cuGetErrorName(result, ctypes.byref(text))
        raise RuntimeError(f"{name}: {text.value.decode()}")


def load(cubin, code):
    """The kernel; its module stays loaded."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), cubin)
    call("cuModuleGetFunction", ctypes.byref(function), module, b"attention_hopper")
    call("cuFuncSetAttribute", function, DYNAMIC_SHARED, shared_bytes(code))
    return function


def tensor_map(tensor, box_rows):
    """A buffer and the address in it of the map of `tensor`, [batch, head, row, column]."""
    buffer = (ctypes.c_uint64 * 32)()
    address = (ctypes.addressof(buffer) + 127) // 128 * 128
    batch, heads, rows, columns = tensor.shape
    panel = 64 if columns % 64 == 0 else 32
    call(
        "cuTensorMapEncodeTiled",
        ctypes.c_void_p(address),
        MAP_TYPE[tensor.dtype],
        4,
        ctypes.c_void_p(tensor.data_ptr()),
        (ctypes.c_uint64 * 4)(columns, rows, heads, batch),
        (ctypes.c_uint64 * 3)(*[2 * tensor.stride(dim) for dim in (2, 1, 0)]),
        (ctypes.c_uint32 * 4)(panel, box_rows, 1, 1),
        (ctypes.c_uint32 * 4)(1, 1, 1, 1),
        0,
        MAP_SWIZZLE[panel],
        L2_256B,
        0,
    )
    return buffer, address


def empty_output(problem, dtype):
    """(storage with guards, O in it as [batch, head, row, column]), all NaN."""
    size = problem.batch * problem.heads_q * problem.seq_q * problem.head_dim
    storage = torch.full((size + 2 * GUARD,), math.nan, dtype=dtype, device="cuda")
    inner = storage[GUARD : GUARD + size]
    if problem.layout == "bshd":
        return storage, inner.view(problem.batch, problem.seq_q, problem.heads_q, problem.head_dim).transpose(1, 2)
    return storage, inner.view(problem.batch, problem.heads_q, problem.seq_q, problem.head_dim)


class Launch:
    """Callable. `longest_first` as the manifest's parameter; `lse` says whether LSE is asked for."""

    def __init__(self, function, code, problem, q, k, v, sinks=None, lse=False, longest_first=True):
        p = problem
        self._function, self._code = function, code
        self.storage, self.o = empty_output(p, q.dtype)
        self.lse = torch.full((p.batch, p.heads_q, p.seq_q), math.nan, device="cuda") if lse else None
        device = torch.cuda.get_device_properties(0)
        group = p.heads_q // p.heads_kv
        tiles = -(-p.seq_q // (64 * code["CONSUMERS"]))
        items = tiles * p.batch * p.heads_q
        resident = 2 if code["CONSUMERS"] == 1 and 2 * (shared_bytes(code) + 1024) <= 228 * 1024 else 1
        self.grid = min(items, resident * device.multi_processor_count)
        l2_heads = max(1, device.L2_cache_size // 2 // (4 * p.seq_kv * p.head_dim) * group)
        sections = max(1, int(p.batch * p.heads_q / l2_heads + 0.5))
        section = -(-p.batch * p.heads_q // sections) if longest_first and p.mask != "none" else 1
        counter = torch.zeros(1, dtype=torch.int32, device="cuda") if items > self.grid else None
        maps = [tensor_map(q, 64), tensor_map(k, code["BLOCK_N"]), tensor_map(v, code["BLOCK_N"])]
        base = LOG2E / math.sqrt(p.head_dim)
        offset = 0 if p.mask in ("none", "causal") else p.seq_kv - p.seq_q
        i32, i64, f32 = ctypes.c_int32, ctypes.c_int64, ctypes.c_float
        values = [self._pointer(tensor) for tensor in (self.o, self.lse, counter)]
        values += map(i32, (items, tiles, section, p.batch, p.heads_q, group, p.seq_q, p.seq_kv, offset))
        values.append(i32(min(p.window, p.seq_q + p.seq_kv)))
        values += map(f32, (1 if p.softcap else base, 2 * base / p.softcap if p.softcap else 0, LOG2E * p.softcap))
        values += map(i64, (self.o.stride(0), self.o.stride(1), self.o.stride(2)))
        values.append(self._pointer(sinks))
        addresses = [address for _, address in maps] + [ctypes.addressof(value) for value in values]
        self._parameters = (ctypes.c_void_p * len(addresses))(*addresses)
        self._kept = maps, values, counter, q, k, v, sinks

    @staticmethod
    def _pointer(tensor):
        return ctypes.c_uint64(0 if tensor is None else tensor.data_ptr())

    def __call__(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        threads = 128 * (1 + self._code["CONSUMERS"])
        shared = shared_bytes(self._code)
        call("cuLaunchKernel", self._function, self.grid, 1, 1, threads, 1, 1, shared, stream, self._parameters, None)

    def guards_whole(self):
        return bool(self.storage[:GUARD].isnan().all() and self.storage[-GUARD:].isnan().all())
