"""An answer made callable."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attune.cuda import arrays
from attune.cuda.device import Device
from attune.cuda.device import device as device_of
from attune.cuda.driver import INVALID_CONTEXT, CudaError, Driver, driver
from attune.cuda.launch import PACK_ALL, PACK_TENSORS, Bound
from attune.cuda.module import check_is_cudas
from attune.cuda.softmax_scale import scaled
from attune.cuda.strides import Placement, names_strides, placed, placement_of
from attune.cuda.tensors import ARGUMENTS, SCALES, arguments_of, expected
from attune.errors import InvalidArgument
from attune.values import Answer

_PER_THREAD_STREAM = 2  # CU_STREAM_PER_THREAD: another stream in each thread
_MOST_ACCEPTED = 4096
_MOST_BOUND = 1024
_MOST_PLACED = 256
_MOST_SCALES = 256
_LAST = slice(-1, None)  # dimension


class Kernel:
    """Computes `answer.problem` on `device`; made by `attune.load`. Thread-safe.

    Everything is resolved when it is made: a call packs five addresses (twelve where the problem has sinks, sequences
    of their own lengths or scales) and launches. Scratch memory is kept a stream (attune/cuda/scratch.py), so a stream
    must not be destroyed, and another take its handle, while its work is running.
    """

    def __init__(self, answer: Answer, device: Device, functions: list[Any] | None = None) -> None:
        """`functions`: those of `answer`, where they are known."""
        self.answer = answer
        self.device = device.index
        self._home = device
        self._driver = device.driver
        if functions is None:
            with self._driver.on(self.device):
                functions = device.modules.functions(answer)
        self._functions = functions
        self._has_scratch = any(buffer.bytes > 0 for buffer in answer.recipe.scratch)
        self._arguments = arguments_of(answer.problem)
        self._any_strides = names_strides(answer.recipe)
        # By the signatures of torch tensors that were found right: this kernel, or as it is for their strides.
        self._accepted: dict[tuple, Kernel] = {}
        self._placed: dict[Placement, Kernel | str] = {}  # or why it cannot be
        self._scaled: dict[float, Kernel | str] = {}  # likewise
        self._of_stream: dict[Any, Bound] = {}
        self._of_capture: dict[tuple[int, int], Bound] = {}  # by the capture's id and the stream
        self._launch_ex = self._driver.launch
        if self._driver.device_count > 1:
            self.launch = self._launch_on_device

    def __call__(
        self,
        q: Any,
        k: Any,
        v: Any,
        out: Any = None,
        lse: Any = None,
        stream: Any = None,
        *,
        sinks: Any = None,
        cu_seqlens_q: Any = None,
        cu_seqlens_k: Any = None,
        seqused_k: Any = None,
        block_table: Any = None,
        k_scale: Any = None,
        v_scale: Any = None,
    ) -> Any:
        """Launches on the current stream and returns `out`; with problem.lse (out, lse).

        q, out: [batch, heads_q, seq_q, head_dim]; k, v: [batch, heads_kv, seq_kv, head_dim], in both layouts, which
        differ in their strides alone: a tensor of layout bshd is `x.transpose(1, 2)` of a contiguous [batch, seq,
        heads, head_dim]. Each may have strides of its own, as slices and views of packed tensors have: multiples of 8
        elements, the last dimension contiguous. lse: fp32 [batch, heads_q, seq_q]. Torch tensors, or arrays with
        __cuda_array_interface__ or __dlpack__, read and written in place; they must live until the stream has done the
        work. `out` and `lse` are made like q when it is a torch tensor, and needed when it is not. `stream` is a
        handle or has `cuda_stream`, `ptr` or `__cuda_stream__`; by default torch's current stream if q is a torch
        tensor, else the stream that q's __cuda_array_interface__ names, else the legacy default stream.

        What problem.sinks, .varlen, .page_size and .kv_dtype add, and the shapes they change, are in docs/problems.md.
        k_scale, v_scale: fp32 [batch, heads_kv], [heads_kv] or [], of any strides. Only the kernel reads cu_seqlens_q,
        cu_seqlens_k, seqused_k, block_table and the scales: their values are not checked.

        Raises InvalidArgument, naming the argument, its value and what the problem asks for; CudaError.
        """
        more = (sinks, cu_seqlens_q, cu_seqlens_k, seqused_k, block_table, k_scale, v_scale)
        if arrays.is_torch(q):
            return self._call_torch(q, k, v, out, lse, stream, more)
        handle = None if stream is None else stream_handle(stream)
        where = arrays.read("q", q, lambda: handle or 0)
        if handle is None:
            handle = where.stream or 0
        others = zip(ARGUMENTS[1:], (k, v, out, lse, *more), strict=True)
        tensors = {"q": where, **self._read(others, lambda: handle)}
        return self._checked_launch(tensors, handle, out, lse)

    def like(self, answer: Answer) -> Kernel:
        """The same code, launched as `answer` says: one that self.answer holds for (Answer.at), or of other strides."""
        pairs = zip(answer.recipe.launches, self.answer.recipe.launches, strict=True)
        # A function is allowed as much shared memory as the largest of its launches asked for.
        known = all(one.dynamic_shared_bytes <= other.dynamic_shared_bytes for one, other in pairs)
        return Kernel(answer, self._home, self._functions if known else None)

    def launch(self, q: int, k: int, v: int, out: int, lse: int, stream: int, more: Sequence[int] = ()) -> None:
        """Launches on addresses that nobody checks (lse: 0 unless the problem asks for it), on a stream's handle.

        `more`: the addresses of sinks, cu_seqlens_q, cu_seqlens_k, seqused_k, block_table, k_scale and v_scale, 0 for
        what the problem has not; empty for a problem that has none of them.
        """
        bound = self._of_stream.get(stream)
        if bound is None or (self._has_scratch and self._driver.is_capturing(stream)):
            bound = self._bind(stream)
        launch = self._launch_ex
        with bound.lock:
            if more:
                PACK_ALL(bound.values, 0, q, k, v, out, lse, *more)
            else:
                PACK_TENSORS(bound.values, 0, q, k, v, out, lse)
            if bound.maps is not None:
                bound.maps.show((q, k, v, out, lse, *more))
            for config, function, parameters in bound.launches:
                result = launch(config, function, parameters, 0)[0]
                if result:
                    break
            else:
                return None
            # An earlier launch may have left other than zeros.
            if parameters != bound.launches[0][2] and bound.zeroed[1]:
                with contextlib.suppress(CudaError), self._driver.on(self.device):
                    self._driver.zero(*bound.zeroed, stream)
        if result == INVALID_CONTEXT and self._driver.current_device() is None:  # a thread that never used CUDA
            self._driver.make_current(self.device)
            return self.launch(q, k, v, out, lse, stream, more)
        raise self._driver.error(f"launching {self.answer.variant.text} for {self.answer.problem}", result)

    def _launch_on_device(
        self, q: int, k: int, v: int, out: int, lse: int, stream: int, more: Sequence[int] = ()
    ) -> None:
        """`launch` where there are several devices: handles such as 0 mean a stream of the current one."""
        if self._driver.current_device() == self.device:
            return Kernel.launch(self, q, k, v, out, lse, stream, more)
        with self._driver.on(self.device):
            return Kernel.launch(self, q, k, v, out, lse, stream, more)

    def _call_torch(self, q: Any, k: Any, v: Any, out: Any, lse: Any, stream: Any, more: tuple) -> Any:
        torch = sys.modules["torch"]
        if torch.is_grad_enabled() and any(arrays.is_torch(t) and t.requires_grad for t in (q, k, v)):
            raise InvalidArgument("an input requires grad, and a kernel has none; use torch.no_grad() or detach()")
        if out is None or (lse is None and self.answer.problem.lse):
            out, lse = self._outputs(torch, q, out, lse, stream)

        def handle() -> int:
            return torch._C._cuda_getCurrentRawStream(self.device) if stream is None else stream_handle(stream)

        # By identity: arrays compare element by element.
        plain = all(tensor is None for tensor in more)
        given = (q, k, v, out, lse) if plain else (q, k, v, out, lse, *more)
        try:
            addresses = [0 if t is None else t.data_ptr() for t in given]
            signature = tuple(
                [t is not None and (t.shape, t.stride(), t.dtype, t.get_device(), t.data_ptr() & 15) for t in given]
            )
        except (AttributeError, RuntimeError):  # not all are tensors of torch with memory of their own
            signature = None
        accepted = self._accepted.get(signature)
        if accepted is not None:
            accepted.launch(*addresses[:5], handle(), addresses[5:])
            return out if lse is None else (out, lse)
        # The stream is asked for after q was found to be on a GPU.
        tensors = self._read(zip(ARGUMENTS, (q, k, v, out, lse, *more), strict=True), handle)
        kernel = self._for(tensors)
        if signature is not None:
            if len(self._accepted) >= _MOST_ACCEPTED:  # sequences of ever other lengths
                self._accepted.clear()
            self._accepted[signature] = kernel
        return kernel._launch_on(tensors, handle(), out, lse)

    def _outputs(self, torch: Any, q: Any, out: Any, lse: Any, stream: Any) -> tuple[Any, Any]:
        """Those that are not given, from the memory of the stream that they are written on."""
        problem = self.answer.problem
        current = torch.cuda.current_stream(q.device) if stream is not None and q.is_cuda else None
        other = current is not None and current.cuda_stream != stream_handle(stream)
        written_on = torch.cuda.ExternalStream(stream_handle(stream), device=q.device) if other else None
        made = []
        with torch.cuda.stream(written_on) if other else contextlib.nullcontext():
            if out is None:
                made.append(out := torch.empty_like(q))
            if lse is None and problem.lse:
                rows = reversed(q.shape[:2]) if problem.varlen else q.shape[:3]
                made.append(lse := torch.empty(tuple(rows), dtype=torch.float32, device=q.device))
        if other:
            for tensor in made:
                tensor.record_stream(current)
        return out, lse

    def _read(self, given: Iterable[tuple[str, Any]], stream: Callable[[], int]) -> dict[str, arrays.Array]:
        """By name, every argument that is given or that the problem asks for."""
        return {
            name: arrays.read(name, argument, stream)
            for name, argument in given
            if argument is not None or name in self._arguments
        }

    def _checked_launch(self, tensors: dict[str, arrays.Array], stream: int, out: Any, lse: Any) -> Any:
        return self._for(tensors)._launch_on(tensors, stream, out, lse)

    def _launch_on(self, tensors: dict[str, arrays.Array], stream: int, out: Any, lse: Any) -> Any:
        addresses = [tensors[name].address if name in tensors else 0 for name in ARGUMENTS]
        self.launch(*addresses[:5], stream, addresses[5:])
        return (out, lse) if "lse" in tensors else out

    def _for(self, tensors: dict[str, arrays.Array]) -> Kernel:
        """This kernel for `tensors`. Raises InvalidArgument for what it cannot compute."""
        problem = self.answer.problem
        for name in tensors:
            if name not in self._arguments:
                raise InvalidArgument(f"{name} is given; problem {problem} does not ask for it")
        shapes = {name: array.shape for name, array in tensors.items()}
        for name, wanted in expected(problem, shapes).items():
            wanted.check(name, tensors[name], self.device)
            if name in SCALES:  # any strides: every launch has theirs
                continue
            free = self._any_strides and name in ("q", "k", "v", "out")
            wanted.check_strides(name, tensors[name], _LAST if free else slice(None))
        if not self._any_strides:
            return self
        placed = ("q", "k", "v", "out", *(SCALES if problem.kv_dtype else ()))
        strides = (tensors[name].strides for name in placed)
        return self.placed(placement_of(problem, *strides))

    def scaled(self, scale: float) -> Kernel:
        """This kernel with another softmax scale than 1/sqrt(head_dim); InvalidArgument, naming it, where it computes
        none such."""
        found = self._scaled.get(scale)
        if found is None:
            try:
                recipe = scaled(self.answer.recipe, self.answer.problem.head_dim, scale)
            except InvalidArgument as error:
                found = error.message
            else:
                found = self.like(dataclasses.replace(self.answer, recipe=recipe))
            if len(self._scaled) >= _MOST_SCALES:
                self._scaled.clear()
            self._scaled[scale] = found
        if isinstance(found, str):
            raise InvalidArgument(found)
        return found

    def placed(self, placement: Placement) -> Kernel:
        """This kernel for tensors that lie so; InvalidArgument, naming tensor and stride, where it cannot read them."""
        found = self._placed.get(placement)
        if found is None:
            try:
                recipe = placed(self.answer.recipe, self.answer.problem, placement)
            except InvalidArgument as error:
                found = error.message
            else:
                same = recipe is self.answer.recipe
                found = self if same else self.like(dataclasses.replace(self.answer, recipe=recipe))
            if len(self._placed) >= _MOST_PLACED:
                self._placed.clear()
            self._placed[placement] = found
        if isinstance(found, str):
            raise InvalidArgument(found)
        return found

    def _bind(self, stream: int) -> Bound:
        with self._home.lock, self._driver.on(self.device):
            if self._driver.is_capturing(stream):
                capture = self._driver.capture(stream)
                bounds, key = self._of_capture, (capture.id, stream)
                arena = self._home.scratch.of_capture(capture, stream)
                for past in [past for past in bounds if past[0] != capture.id and past[1] == stream]:
                    del bounds[past]
            else:
                # This handle is another stream in each thread, and so never found by the handle alone.
                key = (stream, threading.get_ident()) if stream == _PER_THREAD_STREAM else stream
                bounds, arena = self._of_stream, self._home.scratch.of_stream(key, stream)
            if key not in bounds:
                if len(bounds) >= _MOST_BOUND:  # of streams and captures that may be gone
                    bounds.clear()
                bounds[key] = Bound(self._driver, self.answer.recipe, self._functions, arena, stream)
            return bounds[key]


def load(answer: Answer, device: Any = None) -> Kernel:
    """`answer` (asked for with its artifact) as a function of tensors on a GPU of this process.

    `device` is an index, "cuda:1" or a torch.device; by default the device of the calling thread's CUDA context, else
    0. An artifact is loaded once a process; later answers with the same artifact_sha256 need no artifact.

    Raises FailedPrecondition: no CUDA driver or no cuda-bindings; InvalidArgument: no such device, no artifact, or an
    artifact that is not CUDA's; DataLoss: a damaged artifact; CudaError: code for another GPU.
    """
    check_is_cudas(answer)
    return Kernel(answer, device_of(_device_index(device, driver())))


def stream_handle(stream: Any) -> int:
    """The CUstream as a number, of a handle or a library's stream object; InvalidArgument for anything else."""
    if isinstance(stream, int) and stream >= 0:
        return stream
    for name in ("cuda_stream", "ptr"):  # torch, CuPy
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    if hasattr(stream, "__cuda_stream__"):  # cuda.core: (version, handle)
        return int(stream.__cuda_stream__()[1])
    raise InvalidArgument(f"stream is {stream!r}; it must be a handle or have cuda_stream, ptr or __cuda_stream__")


def _device_index(device: Any, driver: Driver) -> int:
    if device is None:
        current = driver.current_device()
        return 0 if current is None else current
    text = str(device)
    digits = text.removeprefix("cuda:") if text.startswith("cuda:") else "0" if text == "cuda" else text
    if not digits.isdecimal() or int(digits) >= driver.device_count:
        raise InvalidArgument(f"device is {text!r}; this process sees cuda:0 to cuda:{driver.device_count - 1}")
    return int(digits)
