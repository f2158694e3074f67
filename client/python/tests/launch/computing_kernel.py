"""A kernel that computes, where tensors are on the CPU: from addresses alone, as a GPU's does."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest
from fake_service import FakeKernel, Service

torch = pytest.importorskip("torch")

_DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


@dataclasses.dataclass
class ComputingKernel(FakeKernel):
    """Of dense tensors in any layout, of packed sequences, or of pages and dense queries; its softmax scale is that of
    the answer's problem unless it is scaled."""

    def launch(self, q: int, k: int, v: int, out: int, lse: int, stream: int, more: Sequence[int] = ()) -> None:
        super().launch(q, k, v, out, lse, stream, more)
        problem = self.answer.problem
        dtype, dim = _DTYPES[problem.dtype], problem.head_dim
        sinks = memory(more[0], torch.float32, problem.heads_q) if problem.sinks else None
        if problem.varlen:
            bounds = [memory(address, torch.int32, problem.batch + 1).tolist() for address in more[1:3]]
            sizes = [(bounds[0][-1], problem.heads_q), *[(bounds[1][-1], problem.heads_kv)] * 2]
            sizes.append(sizes[0])
            tensors = [memory(at, dtype, *size, dim) for at, size in zip((q, k, v, out), sizes, strict=True)]
            of_rows = memory(lse, torch.float32, problem.heads_q, sizes[0][0]) if problem.lse else None
            for b in range(problem.batch):
                rows, keys = (slice(ends[b], ends[b + 1]) for ends in bounds)
                parts = [t[part].transpose(0, 1) for t, part in zip(tensors, (rows, keys, keys, rows), strict=True)]
                self._compute(*parts, sinks, None if of_rows is None else of_rows[:, rows])
            return
        of_q = problem.batch, problem.heads_q, problem.seq_q
        if problem.page_size:
            self._launch_paged((q, k, v, out), of_q, sinks, *more[3:5])
            return
        of_k = problem.batch, problem.heads_kv, problem.seq_kv
        sizes = of_q, of_k, of_k, of_q
        spacings = self.placement or [_spacing(problem.layout, size, dim) for size in sizes]
        tensors = [
            _strided(at, dtype, size, spacing, dim)
            for at, size, spacing in zip((q, k, v, out), sizes, spacings, strict=True)
        ]
        of_rows = memory(lse, torch.float32, *of_q) if problem.lse else None
        for b in range(problem.batch):
            self._compute(*(tensor[b] for tensor in tensors), sinks, None if of_rows is None else of_rows[b])

    def _launch_paged(
        self, addresses: Any, of_q: tuple[int, ...], sinks: Any, seqused_k: int, block_table: int
    ) -> None:
        problem = self.answer.problem
        dtype, dim, width = _DTYPES[problem.dtype], problem.head_dim, -(-problem.seq_kv // problem.page_size)
        lengths = memory(seqused_k, torch.int32, problem.batch)
        tables = memory(block_table, torch.int32, problem.batch, width)
        of_k = int(tables.max()) + 1, problem.heads_kv, problem.page_size
        sizes = of_q, of_k, of_k, of_q
        layouts = problem.layout, "bshd", "bshd", problem.layout
        own = [_spacing(layout, size, dim) for layout, size in zip(layouts, sizes, strict=True)]
        q, k, v, out = (
            _strided(at, dtype, size, spacing, dim)
            for at, size, spacing in zip(addresses, sizes, self.placement or own, strict=True)
        )
        for b, (length, table) in enumerate(zip(lengths.tolist(), tables.tolist(), strict=True)):
            keys, values = (torch.cat([pages[page] for page in table], 1)[:, :length] for pages in (k, v))
            self._compute(q[b], keys, values, out[b], sinks, None)

    def _compute(self, q: Any, k: Any, v: Any, out: Any, sinks: Any, lse: Any) -> None:
        """Of one sequence, [heads, length, head_dim]."""
        problem = self.answer.problem
        group = problem.heads_q // problem.heads_kv
        k, v = (tensor.float().repeat_interleave(group, 0) for tensor in (k, v))
        logits = q.float() @ k.transpose(1, 2) * (self.scale or 1 / math.sqrt(problem.head_dim))
        if problem.softcap:
            logits = problem.softcap * torch.tanh(logits / problem.softcap)
        offset = 0 if problem.mask == "causal" and not problem.has_own_lengths else k.shape[1] - q.shape[1]
        distance = torch.arange(q.shape[1])[:, None] + offset - torch.arange(k.shape[1])
        if problem.mask != "none":
            logits = logits.masked_fill(distance < 0, -math.inf)
        if problem.window:
            logits = logits.masked_fill(distance >= problem.window, -math.inf)
        total = logits.logsumexp(-1)
        if sinks is not None:
            total = torch.logaddexp(total, sinks[:, None])
        out.copy_((logits - total[..., None]).exp() @ v)
        if lse is not None:
            lse.copy_(total)


def memory(address: int, dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """What lies there, as a tensor."""
    size = math.prod(shape) * dtype.itemsize
    return torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype).view(shape)


def _spacing(layout: str, size: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """The strides of [batch, heads, length, dim] without the last."""
    _, heads, length = size
    return (heads * length * dim, *((dim, heads * dim) if layout == "bshd" else (length * dim, dim)))


def _strided(address: int, dtype: torch.dtype, size: tuple[int, ...], spacing: Any, dim: int) -> torch.Tensor:
    last = sum((count - 1) * stride for count, stride in zip(size, spacing, strict=True))
    return memory(address, dtype, last + dim).as_strided((*size, dim), (*spacing, 1))


def have_kernels_compute(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """From then on what `service` loads is such kernels."""
    from attune.background import kernel_cache

    def load(answer: Any, device: int) -> ComputingKernel:
        return ComputingKernel(answer, service.launches, scales=service.scales)

    monkeypatch.setattr(kernel_cache, "load", load)
