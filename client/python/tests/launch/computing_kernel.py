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
    """Of dense bhsd tensors, or of packed sequences; its softmax scale is that of the answer's problem unless it is
    scaled."""

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
        of_k = problem.batch, problem.heads_kv, problem.seq_kv
        tensors = [
            memory(at, dtype, *size, dim) for at, size in zip((q, k, v, out), (of_q, of_k, of_k, of_q), strict=True)
        ]
        of_rows = memory(lse, torch.float32, *of_q) if problem.lse else None
        for b in range(problem.batch):
            self._compute(*(tensor[b] for tensor in tensors), sinks, None if of_rows is None else of_rows[b])

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


def have_kernels_compute(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """From then on what `service` loads is such kernels."""
    from attune.background import kernel_cache

    def load(answer: Any, device: int) -> ComputingKernel:
        return ComputingKernel(answer, service.launches, scales=service.scales)

    monkeypatch.setattr(kernel_cache, "load", load)
