"""The API's enums. A value is the number on the wire; one that only a later version knows reads as UNSPECIFIED."""

from __future__ import annotations

import enum
from typing import TypeVar

from attune.errors import InvalidArgument

E = TypeVar("E", bound="ApiEnum")


class ApiEnum(enum.Enum):
    """The base of them all."""

    @classmethod
    def _missing_(cls: type[E], value: object) -> E | None:
        return cls(0) if isinstance(value, int) and value != 0 else None

    @classmethod
    def of(cls: type[E], value: E | str) -> E:
        """The member itself, or the one named so in upper or lower case, with _ or -; InvalidArgument lists what is
        allowed."""
        if isinstance(value, cls):
            return value
        allowed = [member.name for member in cls if member.value != 0]
        name = value.upper().replace("-", "_") if isinstance(value, str) else ""
        if name not in allowed:
            raise InvalidArgument(f"{cls.__name__.lower()} is {value!r}; it must be one of {', '.join(allowed)}")
        return cls[name]

    def __str__(self) -> str:
        return self.name


class Provenance(ApiEnum):
    """Why an answer, in the order of how much it can be relied on."""

    UNSPECIFIED = 0
    EXACT = 1  # tuned for this problem on this device, everything it depends on unchanged
    TIE = 2  # as EXACT, and statistically tied with others
    STALE = 3  # tuned, but a source, the toolchain or the driver has changed since
    NEAREST = 4  # tuned for the nearest problem that this variant is also feasible for
    HEURISTIC = 5  # heuristic default, not benchmarked


class Objective(ApiEnum):
    """What a variant is best by."""

    UNSPECIFIED = 0  # TIME
    TIME = 1  # microseconds a run
    ENERGY = 2  # joules a run
    EDP = 3  # energy-delay product: joules a run times its seconds


class ArtifactState(ApiEnum):
    """Whether there is code to launch an answer with."""

    UNSPECIFIED = 0  # nobody has looked
    READY = 1
    COMPILING = 2  # being looked for or compiled: ask again, or with `wait`
    NONE = 3  # there is none; the answer's artifact_reason says why


class Axis(ApiEnum):
    """What is different in the problems of a range."""

    UNSPECIFIED = 0
    KV = 1  # seq_kv
    Q = 2  # seq_q
    Q_AND_KV = 3  # both, of one length
    BATCH = 4


class Field(ApiEnum):
    """Which number of a recipe depends on a length."""

    UNSPECIFIED = 0
    SCRATCH_BYTES = 1
    GRID = 2
    DYNAMIC_SHARED_BYTES = 3
    ARG = 4  # I32 or I64
    TENSOR_MAP_DIM = 5
    TENSOR_MAP_STRIDE = 6
    TENSOR_MAP_OFFSET = 7


class Policy(ApiEnum):
    """How trials are timed."""

    UNSPECIFIED = 0
    HOT = 1  # runs back to back over rotating copies of the inputs, as deployed
    COLD = 2  # L2 flushed before each run
    L2_WARM = 3  # runs back to back on one copy of the inputs: L2 has what fits


class Verdict(ApiEnum):
    """How a trial ended."""

    UNSPECIFIED = 0
    OK = 1
    INFEASIBLE = 2  # spills, or cannot be resident on the device
    COMPILE_ERROR = 3
    WRONG_RESULT = 4
    OUT_OF_BOUNDS = 5
    TIMEOUT = 6
    CRASHED = 7
    UNSTABLE = 8  # right once but not repeatably, or its times would not settle
    LOST = 9  # the infrastructure failed; never blamed on the variant
    SLOW = 10  # right in one run on one input distribution, and given up as slower than the job's anchor


class Backend(ApiEnum):
    UNSPECIFIED = 0
    CUDA = 1
    OPENCL = 2


class Strategy(ApiEnum):
    """Which variants a tuning tries."""

    UNSPECIFIED = 0
    EXHAUSTIVE = 1
    RANDOM = 2
    GUIDED = 3
    EVOLUTION = 4


class Effort(ApiEnum):
    """How long Strategy.GUIDED and EVOLUTION go on."""

    UNSPECIFIED = 0
    QUICK = 1
    STANDARD = 2
    FULL = 3
    EXHAUSTIVE = 4


class State(ApiEnum):
    """Of an operation."""

    UNSPECIFIED = 0
    QUEUED = 1
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4
    CANCELLED = 5


class Phase(ApiEnum):
    """What an operation is doing."""

    UNSPECIFIED = 0
    QUEUED = 1
    ENUMERATE = 2
    REFERENCE = 3  # inputs and reference results
    TRIALS = 4  # compiling ahead, checking, timing
    PLAY_OFF = 5  # the last few and the incumbent, interleaved
    VERIFY = 6  # the winner checked again, on a new seed
    DONE = 7


class Decision(ApiEnum):
    """Of an evaluation."""

    UNSPECIFIED = 0
    KEEP = 1  # at least 2 % faster than the incumbent, or there was none
    REVERT = 2
    PINNED = 3  # asked for by `pin`
    CHECKED = 4  # the server's own check of an answer that nobody tuned: nothing was decided


class SubmitDecision(ApiEnum):
    """Of a kernel that its author brought."""

    UNSPECIFIED = 0
    KEEP = 1  # right for every problem, faster for one, slower by more than 2 % for none
    REVERT = 2


class SubmissionState(ApiEnum):
    UNSPECIFIED = 0
    PRIVATE = 1  # its author's; served to nobody
    ADOPTED = 2  # one of the families that are searched and served
    WITHDRAWN = 3


class Gate(ApiEnum):
    """A rule of thumb for kernels."""

    UNSPECIFIED = 0
    CTAS = 1  # fewer than 4 CTAs an SM
    SPILLS = 2
    SHARED_MEMORY = 3  # more than the device has for a block
    OCCUPANCY = 4  # registers or shared memory leave few warps resident
    REGRESSION = 5  # more than 2 % slower than the base
    TIME = 6  # a limit of time
    SANITIZER = 7  # compute-sanitizer's findings, or why it did not come to any


class Bound(ApiEnum):
    """What bounds a trial."""

    UNSPECIFIED = 0
    GRID = 1  # too few CTAs for the SMs
    OCCUPANCY = 2
    MEMORY = 3
    COMPUTE = 4
    LATENCY = 5  # near the launch overhead
    TENSOR_CORES_UNUSED = 6
    NOT_OK = 7  # the verdict says why
    COUNTERS = 8  # as Nsight Compute's counters have it
    SANITIZER = 9  # compute-sanitizer has found errors


class SanitizerTool(ApiEnum):
    """A tool of compute-sanitizer."""

    UNSPECIFIED = 0
    MEMCHECK = 1  # accesses outside of allocations, or misaligned
    RACECHECK = 2  # hazards of shared memory
    SYNCCHECK = 3  # barriers that not all threads come to
    INITCHECK = 4  # reads of global memory that nobody wrote


class TrendState(ApiEnum):
    """How what is served has done since it was promoted."""

    UNSPECIFIED = 0
    NOT_TIMED = 1  # never again since
    SAME = 2  # within the regression threshold
    FASTER = 3  # confirmed in cycles
    SLOWER = 4  # confirmed in cycles: a regression
    AMBIGUOUS = 5  # no night has settled it
    MOVED = 6  # timed on another card of the class since: not comparable


class Comparison(ApiEnum):
    """Of two times of a problem."""

    UNSPECIFIED = 0
    SAME = 1  # within the threshold
    FASTER = 2  # the second is, beyond the threshold, and the intervals do not overlap
    SLOWER = 3
    UNCLEAR = 4  # the intervals overlap, or another process was on the device
    ONLY_FROM = 5  # no second time
    ONLY_TO = 6


class Outcome(ApiEnum):
    """Of one problem of a sweep."""

    UNSPECIFIED = 0
    NEW = 1  # had no incumbent
    FASTER = 2  # a faster variant was promoted, or the incumbent itself got faster
    SAME = 3
    SLOWER = 4  # the incumbent takes longer than before, confirmed in cycles
    AMBIGUOUS = 5  # intervals neither apart nor settled
    FAILED = 6  # no answer, or an error
    SKIPPED = 7  # the budget ran out first
    MOVED = 8  # timed on a card that has never timed it: nothing to compare with
