"""One code of attention_mma bound to tensors, launched as its manifest says. No pages, no sequences of their own."""

import ctypes
import math

import torch
from codes import shared_bytes

LOG2E = 1.44269504088896341
GUARD = 4096  # elements before and behind O
DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

_cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    result = getattr(_cuda, name)(*arguments)
    if result:
        text = ctypes.c_char_p()
        _cuda.cuGetErrorName(result, ctypes.byref(text))
        raise RuntimeError(f"{name}: {text.value.decode()}")


def load(cubin, code):
    """(the kernel, the one that reduces splits); their module stays loaded."""
    module, function, combine = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), cubin)
    call("cuModuleGetFunction", ctypes.byref(function), module, b"attention_mma")
    call("cuFuncSetAttribute", function, DYNAMIC_SHARED, shared_bytes(code))
    call("cuModuleGetFunction", ctypes.byref(combine), module, b"attention_mma_combine")
    return function, combine


def _parameters(values):
    return (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])


class Launch:
    """Callable. Tensors are [batch, head, row, column]."""

    def __init__(self, functions, code, problem, q, k, v, sinks=None, lse=False):
        p = problem
        (self._function, self._combine), self._code = functions, code
        size = p.batch * p.heads_q * p.seq_q * p.head_dim
        self.storage = torch.full((size + 2 * GUARD,), math.nan, dtype=q.dtype, device="cuda")
        self.o = self.storage[GUARD : GUARD + size].view(p.batch, p.heads_q, p.seq_q, p.head_dim)
        if p.layout == "bshd":
            self.o = self.o.reshape(p.batch, p.seq_q, p.heads_q, p.head_dim).transpose(1, 2)
        self.lse = torch.full((p.batch, p.heads_q, p.seq_q), math.nan, device="cuda") if lse else None
        splits = code["KV_SPLITS"]
        pack = p.heads_q // p.heads_kv if code["PACK_GQA"] else 1
        group, heads = p.heads_q // p.heads_kv // pack, p.heads_q // pack
        tiles = -(-p.seq_q * pack // code["BLOCK_M"])
        self.items = p.batch * heads * tiles * splits
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        l2_heads = max(1, l2 // 2 // (4 * p.seq_kv * p.head_dim) * group)
        sections = max(1, int(p.batch * heads / l2_heads + 0.5))
        section = -(-p.batch * heads // sections) if code["LONGEST_FIRST"] else 1
        rows = p.batch * p.heads_q * p.seq_q
        partial_o = torch.full((splits, rows, p.head_dim), math.nan, device="cuda") if splits > 1 else None
        partial_ml = torch.full((splits, rows, 2), math.nan, device="cuda") if splits > 1 else None
        self.tickets = (
            torch.zeros(self.items // splits, dtype=torch.int32, device="cuda") if code["COMBINE"] == 2 else None
        )
        base = LOG2E / math.sqrt(p.head_dim)
        bottom_right = p.mask not in ("none", "causal")
        i32, i64, f32 = ctypes.c_int32, ctypes.c_int64, ctypes.c_float
        pointers = (q, k, v, self.o, self.lse, partial_o, partial_ml, None, self.tickets)
        values = [self._pointer(tensor) for tensor in pointers]
        values += map(i32, (self.items, tiles, section, splits, p.batch, heads, pack, group, p.seq_q, p.seq_kv))
        values += map(i32, (p.seq_kv - p.seq_q if bottom_right else 0, min(p.window, p.seq_q + p.seq_kv)))
        values += map(f32, (1 if p.softcap else base, 2 * base / p.softcap if p.softcap else 0, LOG2E * p.softcap))
        for tensor in (q, k, v, self.o):
            values += map(i64, tensor.stride()[:3])
        values += [self._pointer(tensor) for tensor in (sinks, None, None, None, None)]
        values.append(i32(bottom_right))
        values += [self._pointer(None)] * 2 + [i64(0)] * 4
        self._arguments = _parameters(values)
        self._cta_rows = 8 if splits <= 4 else 2 if splits <= 16 else 1
        combine = [self._pointer(tensor) for tensor in (partial_o, partial_ml, self.o, self.lse)]
        combine += [i32(splits), i64(rows), i32(self._cta_rows), i32(p.heads_q), i32(p.seq_q)]
        combine += [*map(i64, self.o.stride()[:3]), self._pointer(None), i32(p.batch)]
        self._combine_arguments = _parameters(combine)
        self._rows = rows
        self._kept = values, combine, partial_o, partial_ml, q, k, v, sinks

    @staticmethod
    def _pointer(tensor):
        return ctypes.c_uint64(0 if tensor is None else tensor.data_ptr())

    def __call__(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        threads = 32 * self._code["WARPS_M"] * self._code["WARPS_N"]
        shared = shared_bytes(self._code)
        call("cuLaunchKernel", self._function, self.items, 1, 1, threads, 1, 1, shared, stream, self._arguments, None)
        if self._code["COMBINE"] == 1:
            grid = -(-self._rows // self._cta_rows)
            call("cuLaunchKernel", self._combine, grid, 1, 1, 256, 1, 1, 0, stream, self._combine_arguments, None)

    def guards_whole(self):
        return bool(self.storage[:GUARD].isnan().all() and self.storage[-GUARD:].isnan().all())
