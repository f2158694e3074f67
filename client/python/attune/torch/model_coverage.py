"""What of a model's attention attune's kernels would compute, and why not the rest."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from attune.background import settings
from attune.background.contest import is_contested
from attune.background.head_dims import is_padded, padded, scale_of
from attune.background.reason import Reason, Unsuitable
from attune.background.records import recorded
from attune.background.service import Service, check_code, unanswered
from attune.cuda.softmax_scale import scaled
from attune.cuda.strides import Placement, placed
from attune.errors import InvalidArgument
from attune.problem import Problem
from attune.torch.call import AttentionCall, ExtraTensors
from attune.torch.contest import rival
from attune.torch.dispatch import computed, problem_of_call
from attune.torch.fallback import by_torch
from attune.torch.problem_of_tensors import (
    check_addresses,
    check_eager,
    is_strided,
    layout_of,
    new_output,
    other_scale,
    placement_of,
    problem_for,
    refusal,
)
from attune.torch.process import gpu_of
from attune.torch.replace import replace_sdpa, scaled_dot_product_attention
from attune.values import LaunchRecipe, Provenance


@dataclass(frozen=True, slots=True)
class CoveredCall:
    """Calls of one function that are the same to attune."""

    function: str  # "scaled_dot_product_attention", "attune.attention_paged"
    inputs: str  # shapes and dtype of the first of them
    problem: Problem | None  # None: no problem is such a call
    count: int
    reason: str | None  # why torch computes it, as replace_sdpa's stats count it; None: attune's kernel does
    detail: str  # of the reason, or of the provenance
    provenance: Provenance | None  # of the service's answer
    variant: str  # that would run, "attention_mma:BLOCK_M=64,..."; empty without one


@dataclass(frozen=True, repr=False, slots=True)
class Coverage:
    """`calls` in the order in which the model first made them; printed, a table."""

    calls: tuple[CoveredCall, ...]

    @property
    def total(self) -> int:
        return sum(call.count for call in self.calls)

    @property
    def launched(self) -> int:
        """How many calls a kernel would compute."""
        return sum(call.count for call in self.calls if call.reason is None)

    @property
    def fallbacks(self) -> Counter[str]:
        """How many calls torch would compute, by the reason."""
        found = Counter[str]()
        for call in self.calls:
            if call.reason is not None:
                found[call.reason] += call.count
        return found

    def __repr__(self) -> str:
        rows = [("calls", "function", "problem", "runs", "because")]
        for call in self.calls:
            what = call.inputs if call.problem is None else str(call.problem)
            detail = f": {call.detail}" if call.detail else ""
            if call.reason is None and call.provenance is not None:
                runs = ("attune", f"{call.provenance.name}{detail}, {call.variant}")
            else:
                runs = ("torch", f"{call.reason}{detail}")
            rows.append((str(call.count), call.function, what, *runs))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, f"{self.launched} of {self.total} calls would run attune's kernels"])


def coverage(model: Callable[..., object], inputs: object = (), *, device: str | None = None) -> Coverage:
    """Runs `model` once on `inputs` and says of each attention call what would compute it inside of replace_sdpa.

    `inputs`: a mapping of keyword arguments, a tuple or list of positional ones, or a single argument. The calls are
    those of scaled_dot_product_attention that replace_sdpa finds and those of attune's own functions, in this thread
    and outside of further blocks of replace_sdpa and count_calls. torch computes them all; attune launches nothing.
    Then the service is asked once a problem, waiting for each answer, as `attune.configure` says; code is not loaded,
    and of SDPA only times that are recorded count, and what passes (contests, graphs, failed launches) is not foreseen.
    Gradients count as in the model's own calls: use torch.no_grad() or torch.inference_mode(). Pass the model as it is
    before torch.compile, whose code calls SDPA by no name.

    `device`: the service's name for a device or device class, such as "l4"; the model's tensors pass for that GPU's,
    wherever they are. With it no GPU is needed here. Neither is one for fake CUDA tensors (torch's FakeTensorMode) and
    `attune.configure(device=...)`.
    """
    block = replace_sdpa()
    recorder = block.stats.recorder = _Recorder(elsewhere=device is not None)
    with block:
        if isinstance(inputs, Mapping):
            model(**inputs)
        elif isinstance(inputs, (tuple, list)):
            model(*inputs)
        else:
            model(inputs)
    given = settings.settings()
    service = Service(given if device is None else dataclasses.replace(given, device=device), gpu_of)
    try:
        answers = _Answers(service, given)
        return Coverage(tuple(answers.covered(call, count) for call, count in recorder.calls.items()))
    finally:
        service.close()


class _Launch(NamedTuple):
    """How a call is launched otherwise than its problem's recipe says."""

    placement: Placement | None = None  # of tensors with strides of their own
    scale: float | None = None  # another than 1/sqrt(head_dim)


_AS_THE_PROBLEM = _Launch()


@dataclass(frozen=True, slots=True)
class _Call:
    """What calls have in common that are one row."""

    function: str
    problem: Problem | None
    gpu: int
    reason: str | None
    launch: _Launch = _AS_THE_PROBLEM
    inputs: str = ""  # told apart by them only without a problem
    detail: str = dataclasses.field(default="", compare=False)
    example: str = dataclasses.field(default="", compare=False)


class _Recorder:
    """Takes attend's and attend_call's place: judges each call, and has torch compute it."""

    def __init__(self, elsewhere: bool) -> None:
        """`elsewhere`: tensors pass for those of a GPU that this process may not have."""
        self.calls = Counter[_Call]()
        self._fakes = FakeTensorMode() if elsewhere else None
        self._computing = False

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None,
        dropout_p: float,
        is_causal: bool,
        scale: float | None,
        enable_gqa: bool,
    ) -> Tensor:
        replaces = sys._getframe(2).f_code is scaled_dot_product_attention.__code__
        function = "scaled_dot_product_attention" if replaces else "attune.attention"

        def judged() -> tuple[Problem, _Launch]:
            q, k, v = (self._on_gpu(tensor) for tensor in (query, key, value))
            refused = refusal(q, k, v, attn_mask, dropout_p, scale, enable_gqa)
            if refused is not None:
                raise Unsuitable(*refused)
            _check_eager(query, key, value)
            problem = problem_for(q, k, v, is_causal)
            if is_padded(problem):
                return problem, _Launch(None, scale_of(problem.head_dim, scale))
            _check_addresses(query, key, value)
            placement = None if layout_of(q, k, v) else placement_of(q, k, v, new_output(q))
            return problem, _Launch(placement, other_scale(scale, q.shape[-1]))

        if not self._computing:
            self._record(function, judged, query, key, value)
        with self._uncounted():
            return by_torch(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)

    def attend_call(self, call: AttentionCall) -> Tensor | tuple[Tensor, Tensor]:
        def judged() -> tuple[Problem, _Launch]:
            _check_eager(*call.tensors())
            call.check_grad()
            there = copy.copy(call)
            there.query, there.key, there.value = (self._on_gpu(x) for x in (call.query, call.key, call.value))
            there.extra = ExtraTensors(*(x if x is None else self._on_gpu(x) for x in call.extra))
            on_gpu = {name: getattr(there.extra, name) for name in ("sinks", "k_scale", "v_scale")}
            there.options = call.options._replace(**on_gpu)
            problem = problem_of_call(there)
            if is_padded(problem):
                return problem, _Launch(None, scale_of(problem.head_dim, there.options.scale))
            _check_addresses(call.query, call.key, call.value)
            with self._fakes or contextlib.nullcontext():
                out, _ = there.outputs()
            return problem, _Launch(there.placement(out), other_scale(there.options.scale, there.query.shape[-1]))

        self._record(call.what, judged, call.query, call.key, call.value)
        if not isinstance(call.query, FakeTensor):
            call.check_memory()
            with self._uncounted():
                return computed(call)
        out, lse = call.outputs()  # sequences of fake tensors have no lengths
        return call.shaped(out) if lse is None else (call.shaped(out), call.shaped(lse))

    @contextlib.contextmanager
    def _uncounted(self) -> Iterator[None]:
        """What torch calls to compute a call, which of fake tensors is SDPA again, is none of the model's."""
        before, self._computing = self._computing, True
        try:
            yield
        finally:
            self._computing = before

    def _record(
        self,
        function: str,
        judged: Callable[[], tuple[Problem, _Launch]],
        query: Tensor,
        key: Tensor,
        value: Tensor,
    ) -> None:
        inputs = _described(query, key, value)
        try:
            problem, launch = judged()
            call = _Call(function, problem, query.get_device(), None, launch, example=inputs)
        except Unsuitable as error:
            call = _Call(function, None, -1, error.reason.value, _AS_THE_PROBLEM, inputs, error.detail, inputs)
        self.calls[call] += 1

    def _on_gpu(self, tensor: Tensor) -> Tensor:
        """`tensor`, or one like it that passes for a GPU's."""
        if self._fakes is None or not is_strided(tensor):
            return tensor
        with self._fakes:
            like = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda:0")
        return like.requires_grad_(tensor.requires_grad)


class _Answer(NamedTuple):
    """The last four fields of a CoveredCall, and how a variant that would run is launched."""

    reason: str | None
    detail: str
    provenance: Provenance | None = None
    variant: str = ""
    recipe: LaunchRecipe | None = None


class _Answers:
    """What the service says, asked once a problem."""

    def __init__(self, service: Service, given: settings.Settings) -> None:
        self._service = service
        self._settings = given
        self._known: dict[tuple[Problem, int], _Answer] = {}

    def covered(self, call: _Call, count: int) -> CoveredCall:
        if call.problem is None:
            return CoveredCall(call.function, call.example, None, count, call.reason, call.detail, None, "")
        found = self._known.get((call.problem, call.gpu))
        if found is None:
            found = self._known[call.problem, call.gpu] = self._ask(call.problem, call.gpu)
        if found.recipe is not None and call.launch.scale is not None:
            try:
                scaled(found.recipe, padded(call.problem).head_dim, call.launch.scale)
            except InvalidArgument as error:
                found = found._replace(reason=Reason.SCALE.value, detail=error.message)
        if found.recipe is not None and call.launch.placement is not None:
            try:
                placed(found.recipe, call.problem, call.launch.placement)
            except InvalidArgument as error:
                found = found._replace(reason=Reason.LAYOUT.value, detail=error.message)
        return CoveredCall(call.function, call.example, call.problem, count, *found[:4])

    def _ask(self, problem: Problem, gpu: int) -> _Answer:
        try:
            answer = self._service.answer_without_code(problem, gpu)
        except Exception as error:
            unsuitable = unanswered(problem, error)
            return _Answer(unsuitable.reason.value, unsuitable.detail)
        try:
            check_code(problem, answer)
        except Unsuitable as unsuitable:
            return _Answer(unsuitable.reason.value, unsuitable.detail, answer.provenance, answer.variant.text)
        if is_padded(problem):
            detail = f"padded to {padded(problem)}" + (f", {answer.provenance_detail}" * bool(answer.provenance_detail))
            return _Answer(None, detail, answer.provenance, answer.variant.text, answer.recipe)
        if self._settings.never_slower and is_contested(problem):
            known = recorded(answer, self._settings.policy, rival())
            if known is not None and not known.faster:
                slower = known.unsuitable()
                return _Answer(slower.reason.value, slower.detail, answer.provenance, answer.variant.text)
        return _Answer(None, answer.provenance_detail, answer.provenance, answer.variant.text, answer.recipe)


def _check_eager(*tensors: Tensor) -> None:
    """Fake tensors pass for those that they stand for."""
    if not isinstance(tensors[0], FakeTensor):
        check_eager(*tensors)


def _check_addresses(*tensors: Tensor) -> None:
    """Fake tensors have none."""
    if not isinstance(tensors[0], FakeTensor):
        check_addresses(*tensors)


def _described(query: Tensor, key: Tensor, value: Tensor) -> str:
    if not (is_strided(query) and is_strided(key) and is_strided(value)):
        return "nested or sparse"
    shapes = ("x".join(map(str, tensor.shape)) for tensor in (query, key, value))
    return ", ".join(f"{name} {shape}" for name, shape in zip("qkv", shapes, strict=True)) + f", {query.dtype}"
