"""Problems to kernels: asks the service once a problem, and remembers for a while that there was no answer."""

from __future__ import annotations

import math
import threading
import time

import torch

from attune.cuda import CudaError, Kernel, load
from attune.cuda.device import modules
from attune.errors import AttuneError, NotFound, Unreachable
from attune.problem import Problem
from attune.torch.fallback import Reason, Unsuitable
from attune.torch.settings import Settings
from attune.values import Answer, Backend

_MOST_KERNELS = 4096


class KernelCache:
    """The kernels of one service, under one configuration. Thread-safe; one thread asks at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._kernels: dict[tuple[Problem, int], Kernel] = {}
        self._held: dict[tuple[Problem, int], tuple[float, Unsuitable]] = {}  # until when, and why
        self._unreachable: tuple[float, Unsuitable] = (-math.inf, Unsuitable(Reason.UNREACHABLE, ""))
        self._devices: dict[int, str] = {}

    def kernel(self, problem: Problem, device: int) -> Kernel:
        """The kernel for `problem` on this process's GPU `device`. Raises Unsuitable, at once while a failure holds."""
        key = problem, device
        with self._lock:
            found = self._kernels.get(key)
            if found is not None:
                return found
            for until, unsuitable in (self._held.get(key, self._unreachable), self._unreachable):
                if time.monotonic() < until:
                    raise unsuitable.again()
            try:
                found = self._load(problem, device)
            except Unsuitable as unsuitable:
                held = time.monotonic() + self._settings.hold, unsuitable.again()
                if unsuitable.reason is Reason.UNREACHABLE:
                    self._unreachable = held
                else:
                    self._held[key] = held
                raise
            for memory in (self._kernels, self._held):
                if len(memory) >= _MOST_KERNELS:
                    del memory[next(iter(memory))]
            self._kernels[key] = found
            return found

    def _load(self, problem: Problem, device: int) -> Kernel:
        try:
            return load(self._ask(problem, device), device)
        except Unreachable as error:
            raise Unsuitable(Reason.UNREACHABLE, f"{error}; not asked again for {self._settings.hold:g} s") from error
        except NotFound as error:
            raise Unsuitable(Reason.NO_ANSWER, str(error)) from error
        except CudaError as error:
            raise Unsuitable(Reason.NOT_LOADED, f"the kernel for {problem}: {error}") from error
        except AttuneError as error:
            raise Unsuitable(Reason.NOT_LOADED, f"{problem}: {error}") from error

    def _ask(self, problem: Problem, device: int) -> Answer:
        """With the artifact, unless the process has loaded it already for another problem."""
        best, name = self._settings.client.best, self._device(device)
        policy, acceptable = self._settings.policy, self._settings.acceptable
        answer = best(problem, device=name, policy=policy, acceptable=acceptable)
        if modules().has(answer.artifact_sha256):
            return answer
        return best(problem, device=name, policy=policy, acceptable=acceptable, artifact=True)

    def _device(self, index: int) -> str:
        """The service's name for this process's GPU."""
        if self._settings.device is not None:
            return self._settings.device
        if index not in self._devices:
            self._devices[index] = self._find_device(index)
        return self._devices[index]

    def _find_device(self, index: int) -> str:
        here = torch.cuda.get_device_properties(index)
        known = [device for device in self._settings.client.devices() if device.backend is Backend.CUDA]
        uuid = str(getattr(here, "uuid", "")).removeprefix("GPU-")
        same = [device for device in known if uuid and device.uuid.removeprefix("GPU-") == uuid]
        same += [device for device in known if device.model == here.name]
        if not same:
            models = ", ".join(f"{device.id} ({device.model})" for device in known) or "no CUDA device"
            raise Unsuitable(Reason.NO_ANSWER, f"cuda:{index} is a {here.name}; the service knows {models}")
        return same[0].id
