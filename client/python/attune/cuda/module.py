"""Artifacts in the driver: each is loaded once a process, however many recipes run its kernels."""

from __future__ import annotations

import hashlib
import math
import threading
from typing import Any

from attune.cuda.driver import TENSOR_MAP_BYTES, Driver
from attune.errors import DataLoss, InvalidArgument
from attune.values import Answer, KernelLaunch

_ELF = b"\x7fELF"  # a cubin
_BYTES = {"I32": 4, "F32": 4, "TENSOR_MAP": TENSOR_MAP_BYTES}  # all others are 8
_PORTABLE_CLUSTER = 8  # CTAs that any GPU with clusters has room for


class Modules:
    """Thread-safe. Nothing is ever unloaded: a graph may hold a kernel as long as the process lives."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self._libraries: dict[str, Any] = {}  # by the artifact's SHA-256

    def has(self, sha256: str) -> bool:
        """Whether an answer with this artifact can be loaded without the artifact's bytes."""
        return sha256 in self._libraries

    def functions(self, answer: Answer) -> list[Any]:
        """The kernel of each launch, in the current context, ready for the launch's dynamic shared memory.

        Raises InvalidArgument: no artifact, one that is not CUDA's, or one that does not fit the recipe; DataLoss: the
        bytes are not those of the answer's SHA-256; CudaError: code for another GPU.
        """
        with self._lock:
            library = self._libraries.get(answer.artifact_sha256)
            if library is None:
                library = self._driver.load_library(_image(answer))
                self._libraries[answer.artifact_sha256] = library
            return [self._function(library, launch) for launch in answer.recipe.launches]

    def _function(self, library: Any, launch: KernelLaunch) -> Any:
        function = self._driver.function(library, launch.entry)
        # Only ever raised: other recipes launch the same function.
        if launch.dynamic_shared_bytes > self._driver.dynamic_shared_bytes(function):
            self._driver.allow_dynamic_shared_bytes(function, launch.dynamic_shared_bytes)
        if launch.cluster is not None and math.prod(launch.cluster) > _PORTABLE_CLUSTER:
            self._driver.allow_large_clusters(function)
        self._check_parameters(function, launch)
        return function

    def _check_parameters(self, function: Any, launch: KernelLaunch) -> None:
        sizes = self._driver.parameter_sizes(function)
        if sizes is None:
            return
        given = [_BYTES.get(arg.kind, 8) for arg in launch.args]
        if given != list(sizes):
            raise InvalidArgument(
                f"recipe: kernel {launch.entry}: arguments have {given} bytes; the artifact's takes {list(sizes)}"
            )


def check_is_cudas(answer: Answer) -> None:
    """InvalidArgument for an answer of another backend, whatever is installed here."""
    if answer.device_id.startswith("opencl"):
        raise InvalidArgument(
            f"answer: device_id is '{answer.device_id}'; attune.load runs the artifacts of CUDA devices"
        )


def _image(answer: Answer) -> bytes:
    """The artifact as the driver takes it: a cubin, or PTX that ends in a zero byte."""
    artifact = answer.artifact
    check_is_cudas(answer)
    if not artifact:
        raise InvalidArgument(
            f"answer: artifact is missing (artifact_sha256 is '{answer.artifact_sha256}'); ask for it: "
            "client.best(problem, artifact=True), and tune the problem if there is none yet"
        )
    found = hashlib.sha256(artifact).hexdigest()
    if found != answer.artifact_sha256:
        raise DataLoss(f"answer: the artifact's SHA-256 is {found}; artifact_sha256 is {answer.artifact_sha256}")
    if artifact.startswith(_ELF):
        return artifact
    if b".version" not in artifact[:4096]:
        raise InvalidArgument(f"answer: artifact begins with {artifact[:8]!r}; it must be a cubin or PTX")
    return artifact if artifact.endswith(b"\0") else artifact + b"\0"
