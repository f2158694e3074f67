"""One code of attention_hopper bound to tensors, launched as its manifest says."""

import ctypes
import math

import torch
from compile import block_m, piece, shared_bytes

LOG2E = 1.44269504088896341
GUARD = 4096  # elements before and behind O
DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
MAP_TYPE = {torch.float16: 6, torch.bfloat16: 9}  # CU_TENSOR_MAP_DATA_TYPE_FLOAT16, _BFLOAT16
MAP_SWIZZLE = {64: 3, 32: 2}  # columns of a panel: CU_TENSOR_MAP_SWIZZLE_128B, _64B
L2_256B = 3
OVERLAPS_PREVIOUS = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
COMBINE_WARPS = 8

_cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    result = getattr(_cuda, name)(*arguments)
    if result:
        text = ctypes.c_char_p()
        _cuda.cuGetErrorName(result, ctypes.byref(text))
        raise RuntimeError(f"{name}: {text.value.decode()}")


def load(cubin, code):
    """(the kernel, the one that joins splits or None); their module stays loaded."""
    module, function, combine = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), cubin)
    call("cuModuleGetFunction", ctypes.byref(function), module, b"attention_hopper")
    call("cuFuncSetAttribute", function, DYNAMIC_SHARED, shared_bytes(code))
    if not code["SPLIT"]:
        return function, None
    call("cuModuleGetFunction", ctypes.byref(combine), module, b"attention_hopper_combine")
    return function, combine


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [
        ("id", ctypes.c_int),
        ("_pad", ctypes.c_char * 4),
        ("value", ctypes.c_int),
        ("_rest", ctypes.c_char * 60),
    ]


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    ]


RAGGED_ROWS, MANY = 1 << 30, 0x7FFF0000


def tensor_map(tensor, box_rows, box_heads=0):
    """A buffer and the address in it of the map of `tensor`: [batch, head, row, column], or ragged, [row, head, column].

    With `box_heads` heads come before rows, and a box has so many of them.
    """
    buffer = (ctypes.c_uint64 * 32)()
    address = (ctypes.addressof(buffer) + 127) // 128 * 128
    panel = 64 if tensor.shape[-1] % 64 == 0 else 32
    if tensor.dim() == 3:
        row, head = 2 * tensor.stride(0), 2 * tensor.stride(1)
        rows, heads, rest = (RAGGED_ROWS, row), (tensor.shape[1], head), [(MANY, row), (MANY, (1 << 35) - row)]
    else:
        batch, heads, rows = ((tensor.shape[dim], 2 * tensor.stride(dim)) for dim in range(3))
        rest = [batch, (1, 16)]
    outer = [heads, rows, *rest] if box_heads else [rows, heads, *rest]
    box = (panel, box_heads, box_rows, 1, 1) if box_heads else (panel, box_rows, 1, 1, 1)
    call(
        "cuTensorMapEncodeTiled",
        ctypes.c_void_p(address),
        MAP_TYPE[tensor.dtype],
        5,
        ctypes.c_void_p(tensor.data_ptr()),
        (ctypes.c_uint64 * 5)(tensor.shape[-1], *[extent for extent, _ in outer]),
        (ctypes.c_uint64 * 4)(*[stride for _, stride in outer]),
        (ctypes.c_uint32 * 5)(*box),
        (ctypes.c_uint32 * 5)(1, 1, 1, 1, 1),
        0,
        MAP_SWIZZLE[panel],
        L2_256B,
        0,
    )
    return buffer, address


def empty_output(problem, dtype, rows=0):
    """(storage with guards, O in it), all NaN: [batch, head, row, column], or of `rows` of all sequences
    [row, head, column]."""
    size = (rows or problem.batch * problem.seq_q) * problem.heads_q * problem.head_dim
    storage = torch.full((size + 2 * GUARD,), math.nan, dtype=dtype, device="cuda")
    inner = storage[GUARD : GUARD + size]
    if rows:
        return storage, inner.view(rows, problem.heads_q, problem.head_dim)
    if problem.layout == "bshd":
        return storage, inner.view(problem.batch, problem.seq_q, problem.heads_q, problem.head_dim).transpose(1, 2)
    return storage, inner.view(problem.batch, problem.heads_q, problem.seq_q, problem.head_dim)


class Launch:
    """Callable. `longest_first` as the manifest's parameter; `lse` says whether LSE is asked for; `given` are a
    sequences.Sequences where these have lengths of their own."""

    def __init__(self, functions, code, problem, q, k, v, sinks=None, lse=False, longest_first=True, given=None):
        p = problem
        (self._function, self._combine), self._code = functions, code
        self.storage, self.o = empty_output(p, q.dtype, len(q) if p.varlen else 0)
        of_lse = (p.heads_q, len(q)) if p.varlen else (p.batch, p.heads_q, p.seq_q)
        self.lse = torch.full(of_lse, math.nan, device="cuda") if lse else None
        device = torch.cuda.get_device_properties(0)
        splits = code["KV_SPLITS"]
        pack = p.heads_q // p.heads_kv if code["PACK_GQA"] else 1
        group, heads = p.heads_q // p.heads_kv // pack, p.heads_q // pack
        tiles = -(-p.seq_q * pack // block_m(code))
        items = tiles * p.batch * heads * splits
        resident = 2 if code["CONSUMERS"] == 1 and 2 * (shared_bytes(code) + 1024) <= 228 * 1024 else 1
        self.grid = min(items, resident * device.multi_processor_count)
        l2_heads = max(1, device.L2_cache_size // 2 // (4 * p.seq_kv * p.head_dim) * group)
        sections = max(1, int(p.batch * heads / l2_heads + 0.5))
        section = -(-p.batch * heads // sections) if longest_first and p.mask != "none" else 1
        counter = torch.zeros(1, dtype=torch.int32, device="cuda") if items > self.grid else None
        self._rows = p.batch * p.heads_q * p.seq_q
        partial_o = torch.full((splits, self._rows, p.head_dim), math.nan, device="cuda") if splits > 1 else None
        partial_ml = torch.full((splits, self._rows, 2), math.nan, device="cuda") if splits > 1 else None
        q_map = tensor_map(q, 64 // pack, pack) if code["PACK_GQA"] else tensor_map(q, 64)
        maps = [q_map, tensor_map(k, piece(code)), tensor_map(v, piece(code))]
        base = LOG2E / math.sqrt(p.head_dim)
        offset = 0 if p.mask in ("none", "causal") else p.seq_kv - p.seq_q
        i32, i64, f32 = ctypes.c_int32, ctypes.c_int64, ctypes.c_float
        values = [self._pointer(tensor) for tensor in (self.o, self.lse, partial_o, partial_ml, counter)]
        values += map(i32, (items, tiles, section, splits, p.batch, heads, pack, group, p.seq_q, p.seq_kv, offset))
        values.append(i32(min(p.window, p.seq_q + p.seq_kv)))
        values += map(f32, (1 if p.softcap else base, 2 * base / p.softcap if p.softcap else 0, LOG2E * p.softcap))
        strides = (0, self.o.stride(1), self.o.stride(0)) if p.varlen else self.o.stride()[:3]
        values += map(i64, strides)
        own = given and (given.q_bounds, given.kv_bounds, given.kv_lengths, given.page_table)
        values += map(self._pointer, (sinks, *(own or [None] * 4)))
        values.append(i32(p.mask not in ("none", "causal")))
        addresses = [address for _, address in maps] + [ctypes.addressof(value) for value in values]
        self._parameters = (ctypes.c_void_p * len(addresses))(*addresses)
        combine = [self._pointer(tensor) for tensor in (partial_o, partial_ml, self.o, self.lse)]
        combine += [i32(splits), i64(self._rows), i32(p.batch), i32(p.heads_q), i32(p.seq_q), *map(i64, strides)]
        combine.append(self._pointer(given and given.q_bounds))
        addresses = [ctypes.addressof(value) for value in combine]
        self._combine_parameters = (ctypes.c_void_p * len(addresses))(*addresses)
        self._kept = maps, values, combine, counter, partial_o, partial_ml, q, k, v, sinks, given

    @staticmethod
    def _pointer(tensor):
        return ctypes.c_uint64(0 if tensor is None else tensor.data_ptr())

    def __call__(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        threads = 128 * (1 + self._code["CONSUMERS"])
        shared = shared_bytes(self._code)
        call("cuLaunchKernel", self._function, self.grid, 1, 1, threads, 1, 1, shared, stream, self._parameters, None)
        if self._combine:
            overlaps = _Attribute(id=OVERLAPS_PREVIOUS, value=1)
            grid = -(-self._rows // COMBINE_WARPS)
            config = _Config((grid, 1, 1), (COMBINE_WARPS * 32, 1, 1), 0, stream, ctypes.pointer(overlaps), 1)
            call("cuLaunchKernelEx", ctypes.byref(config), self._combine, self._combine_parameters, None)

    def guards_whole(self):
        return bool(self.storage[:GUARD].isnan().all() and self.storage[-GUARD:].isnan().all())
