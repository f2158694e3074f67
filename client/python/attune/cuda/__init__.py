"""Runs answers: an artifact and its recipe, as a function of tensors that are on the GPU already."""

from __future__ import annotations

from attune.cuda.driver import CudaError
from attune.cuda.kernel import Kernel, load

__all__ = ["CudaError", "Kernel", "load"]
