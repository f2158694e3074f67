"""What a server runs kernels on, and the kernel families it knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from attune.problem import Problem
from attune.values.convert import Value
from attune.values.enums import Backend
from attune.values.operation import RemovedByConstraint
from attune.values.trial import Variant


@dataclass(frozen=True, slots=True)
class Device(Value):
    id: str  # "cuda:0", "opencl:0"
    backend: Backend
    model: str  # "NVIDIA L4"
    uuid: str  # of the physical device; empty if the backend has none
    driver: str  # "580.159.04"
    target: str  # what code is compiled for: "sm_89", "compute_89", or the OpenCL platform's own name
    fingerprint: str  # of the device's class: hash over what decides code and ranking, the driver apart
    class_alias: str  # the class's short name, "l4"; stands for a device wherever one is named
    compute_units: int  # SMs; OpenCL compute units
    warp_size: int
    max_threads_per_block: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    registers_per_sm: int  # 32-bit registers
    max_registers_per_thread: int
    shared_bytes_per_block: int  # with opt-in
    shared_bytes_per_sm: int
    reserved_shared_bytes_per_block: int
    l2_bytes: int
    memory_bytes: int
    compute_capability: int  # 89 for 8.9; 0 without CUDA
    sm_clock_mhz: int  # maximum
    memory_bandwidth_gbs: int  # theoretical, 10^9 bytes/s; 0 when unknown
    counts_energy: bool  # a counter of the whole card's joules can be read; tune(energy=True) needs it


@dataclass(frozen=True, slots=True)
class BackendStatus(Value):
    """Whether a backend is in use on the server's host, and why not."""

    backend: Backend
    available: bool
    compiler: str  # "nvrtc 13.0", "PoCL 3.1 ..."; empty when there is none
    reason: str  # when not available: what is missing


@dataclass(frozen=True, slots=True)
class Host(Value):
    """What a server runs on."""

    devices: tuple[Device, ...]
    backends: tuple[BackendStatus, ...]
    server_version: str

    def _repr_html_(self) -> str:
        from attune.display import host_html

        return host_html(self)


@dataclass(frozen=True, slots=True)
class Constraint(Value):
    expression: str
    reason: str
    advice: bool  # variants without it work, but are searched only when that is asked for


@dataclass(frozen=True, slots=True)
class Parameter(Value):
    name: str
    values: tuple[int, ...]
    launch_time: bool  # changes the launch, not the code
    description: str


@dataclass(frozen=True, slots=True)
class KernelFamily(Value):
    """A parameterized source with its manifest."""

    name: str
    backend: Backend
    description: str
    source_hash: str
    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    problem_limits: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class FamilyPreflight(Value):
    """What there is to try of one family."""

    name: str
    feasible: bool
    reason: str  # when not feasible
    variants: int  # left after every constraint
    product: int  # before any
    compiles: int  # distinct compile-time parts; 0 where there are too many variants to list
    known: int  # already have a trial under today's dependencies
    removed: tuple[RemovedByConstraint, ...]
    lower_bound: bool  # too large a space to count: there are more variants and removed ones


@dataclass(frozen=True, slots=True)
class Preflight(Value):
    """What variants of a problem there are to try, and what stands in the way."""

    problem: Problem
    device: Device
    families: tuple[FamilyPreflight, ...]
    warnings: tuple[str, ...]
    variants: tuple[Variant, ...]  # when asked for
    estimate: timedelta | None  # from past trials on this device; None when there are none
