"""What is known of a problem on a device, and of all of them together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from attune.background.capture import eager_only
from attune.background.contest import Contest
from attune.background.reason import Reason, Unsuitable
from attune.cuda import Kernel
from attune.problem import Problem
from attune.retry import Backoff

Key = tuple[Problem, int]  # a problem, and this process's GPU

PENDING = Unsuitable(Reason.PENDING, "the service has been asked and has not answered yet")
FIRST_BY_TORCH = Unsuitable(
    Reason.DETERMINISTIC,
    "torch.use_deterministic_algorithms is on, and torch computed this shape before there was a kernel; call "
    "attune.warm before",
)


class Entry:
    """What is known of a problem on a device: a kernel, or why there is none. Calls only read it."""

    __slots__ = (
        "_eager",
        "asked",
        "compiling",
        "contest",
        "device",
        "dropped",
        "due",
        "followers",
        "for_graphs",
        "kernel",
        "key",
        "launch",
        "lead",
        "pinned",
        "unsuitable",
        "waits",
    )

    def __init__(self, key: Key | None, unsuitable: Unsuitable = PENDING, due: float = -math.inf) -> None:
        """`key`: None if no service is to be asked, ever."""
        self.key = key
        self.launch: Callable[..., None] | None = None  # the kernel's
        self.device = -1  # the kernel's, set before `launch`
        self.kernel: Kernel | None = None
        self.contest: Contest | None = None  # decides whether there is a launch
        self.for_graphs = True  # CUDA graphs may have the kernel; if not, `launch` sees to that
        self.unsuitable = unsuitable  # why there is no launch
        self.due = due  # when (time.monotonic) to ask again for what there is no launch for
        self.asked = False  # the background thread has the question, or is to get it
        self.pinned = False  # stays as it is
        self.dropped = False  # to make room: it is looked after no longer
        self.lead: Entry | None = None  # the entry whose answer holds for this problem, too: only it is asked for
        self.followers: dict[Key, Entry] = {}  # those that this one is the lead of
        self.waits: Backoff | None = None
        self.compiling: Backoff | None = None  # the service compiles the code, and is asked for it from time to time
        self._eager: tuple[Kernel, Callable[..., None]] | None = None  # what launch_of made last

    def launch_of(self, kernel: Kernel) -> Callable[..., None]:
        """How calls launch `kernel`, this one's as it is for their tensors: into no CUDA graph unless those may have
        it."""
        if self.for_graphs:
            return kernel.launch
        made = self._eager
        if made is None or made[0] is not kernel:
            made = self._eager = kernel, eager_only(kernel.launch)
        return made[1]

    def forget(self, unsuitable: Unsuitable, due: float) -> None:
        """There is no kernel, and why not."""
        self.launch = self.kernel = self.contest = self._eager = None
        self.unsuitable, self.due = unsuitable, due

    def follow(self, lead: Entry, kernel: Kernel | None) -> None:
        """What is known of `lead` is known of this one; `kernel` is the lead's as it is for this problem. One contest
        decides for both, and so does what is recorded."""
        if kernel is None:
            self.forget(lead.unsuitable, lead.due)
            return
        self.kernel, self.device, self.for_graphs = kernel, kernel.device, lead.for_graphs
        self.contest, self.unsuitable, self.due = lead.contest, lead.unsuitable, lead.due
        self.launch = None if lead.launch is None else self.launch_of(kernel)


@dataclass(frozen=True, slots=True)
class State:
    """What attention knows, and what it took to learn it."""

    kernels: int = 0  # problems with a kernel
    pending: int = 0  # problems that were asked for and not answered yet
    contests: int = 0  # problems whose kernel is being timed against SDPA
    without_kernel: Counter[str] = field(default_factory=Counter)  # other problems, by the reason's value
    questions: int = 0  # problems that the service was asked for
    followed: int = 0  # problems that were not, because an answer to another one holds for them
    checks: int = 0  # of those asked for, again, to see whether the answer is still the same
    replaced: int = 0  # kernels that were replaced, or dropped, because it was not
