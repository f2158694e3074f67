"""One variant compiled, checked and timed for one problem on one device under one policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from google.protobuf.message import Message

from attune.problem import Problem
from attune.values.convert import Value
from attune.values.enums import Policy, Verdict
from attune.values.profile import Profile, Sanitizing
from attune.values.recipe import LaunchRecipe


@dataclass(frozen=True, slots=True)
class Variant(Value):
    """A kernel family with a value for every parameter."""

    family: str
    parameters: dict[str, int] = field(hash=False)  # in the manifest's order
    text: str  # "attention_simt:BLOCK_M=64,BLOCK_N=32,..."

    @classmethod
    def from_message(cls, message: Message) -> Variant:
        parameters = {parameter.name: parameter.value for parameter in message.parameters}
        text = message.text or f"{message.family}:" + ",".join(f"{key}={value}" for key, value in parameters.items())
        return cls(message.family, parameters, text)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Energy(Value):
    """What back-to-back runs take from the whole card, idle power included, by its own counter."""

    joules: float  # a run, over all spans
    low_joules: float  # in the span that took least
    high_joules: float  # and in the one that took most
    power_w: float  # mean, over all spans
    seconds: float  # of all spans together
    runs: int  # in them
    spans: int  # from one step of the counter to another
    contended: bool  # another process was on the device


@dataclass(frozen=True, slots=True)
class Timing(Value):
    """Times in microseconds."""

    median_us: float
    low_us: float  # distribution-free 95 % confidence interval of the median
    high_us: float
    min_us: float
    samples: int
    discarded: int  # taken below 75 % of the round's clock
    settled: bool  # the interval is as narrow as the stopping rule asks
    contended: bool  # another process was on the device
    sm_clock_mhz: int  # NVML, median over the samples; 0 without it, as are those below
    power_w: float
    temperature_c: int
    throttle_reasons: int  # NVML's bit mask, or-ed over the samples
    given_up: bool  # after few samples, as clearly slower than the job's anchor: its time is not known well
    cycles: int  # of a play-off, samples are then its rounds; 0: timed alone
    quantiles_us: tuple[float, ...]  # 33, evenly spaced from the fastest sample to the slowest; () where none were kept
    input_sets: int = 0  # copies of the inputs that the runs took in turn; 0: timed before this was kept
    energy: Energy | None = None  # of the same code on the same card; None: nobody asked, or it could not be measured


@dataclass(frozen=True, slots=True)
class Geometry(Value):
    """Of the main launch, on the device's limits."""

    ctas: int
    threads_per_cta: int
    sm_count: int
    ctas_per_sm: int  # resident at once
    waves: float  # ctas / (sm_count * ctas_per_sm)
    occupancy: float  # resident warps / the SM's warps, 0..1


@dataclass(frozen=True, slots=True)
class Accuracy(Value):
    max_abs_error: float  # against the fp32 reference, worst of all cases
    plain_max_abs_error: float  # of a naive computation at the problem's precision, same case
    cases: int  # input distributions checked


@dataclass(frozen=True, slots=True)
class Resources(Value):
    """From the compiler's report, of the main launch's kernel."""

    registers: int  # a thread
    spill_bytes: int  # stores + loads, a thread
    shared_bytes: int  # static + dynamic, a block
    stack_bytes: int  # a thread


@dataclass(frozen=True, slots=True)
class TrialCost(Value):
    """Where its time went, milliseconds."""

    wait_ms: float  # before it: no code was ready
    check_ms: float  # loaded, run and looked at
    time_ms: float  # sampled, and looked at once more
    device_ms: float  # of both: work ran on the device, by its own events; 0: it has none
    compile_begin: datetime | None  # of its code, where that was compiled for it
    compile_worker: int  # which of the compile workers


@dataclass(frozen=True, slots=True)
class Dependencies(Value):
    """What a trial's result depends on. A trial stays comparable while these stay equal."""

    source_hash: str
    toolchain: str  # "nvrtc 13.0"
    driver: str
    device_fingerprint: str


@dataclass(frozen=True, slots=True)
class Trial(Value):
    name: str  # "trials/123"
    problem: Problem
    device_id: str
    variant: Variant
    policy: Policy
    verdict: Verdict
    detail: str  # why, when not OK
    timing: Timing | None
    accuracy: Accuracy | None
    resources: Resources | None
    geometry: Geometry | None
    recipe: LaunchRecipe | None  # Client.trial gives it; lists leave it out
    dependencies: Dependencies
    artifact_sha256: str  # empty when nothing was compiled
    job: str  # "operations/..." that ran it
    identical_to: str  # the trial with byte-identical code and launch whose timing this one shares
    compile_ms: float
    finish_time: datetime | None
    device_uuid: str  # of the card that ran it; empty when it has none, or an earlier version stored the trial
    profile: Profile | None  # Client.trial gives both, once they were made; lists leave them out
    sanitizing: Sanitizing | None
    cost: TrialCost | None  # None in those of earlier versions
