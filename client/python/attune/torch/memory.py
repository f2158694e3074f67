"""Scratch memory from torch's allocator, which counts it, keeps it within its limits and frees its cache for it."""

from __future__ import annotations

import threading

import torch

from attune.cuda import CudaError
from attune.cuda.driver import driver


def allocate(device: int, size: int, stream: int) -> int:
    """Address of `size` bytes on GPU `device`, for work in the order of `stream`. Raises CudaError where there are
    none, also after torch has given back what it has cached."""
    found: list[int | Exception] = []

    def work() -> None:
        try:
            with driver().on(device):  # and another thread's capture of a graph is left in peace
                found.append(torch.cuda.caching_allocator_alloc(size, device, stream))
        except Exception as error:
            found.append(error)

    torch.cuda.init()
    # The calling thread's allocations may go to a pool (torch.cuda.use_mem_pool, the CUDA graphs of torch.compile) that
    # is to hold nothing of other owners.
    thread = threading.Thread(target=work, name="attune-scratch")
    thread.start()
    thread.join()
    (address,) = found
    if isinstance(address, torch.OutOfMemoryError):
        what = str(address).partition("\n")[0]
        raise CudaError(f"{size} bytes of scratch: {what}", reason="CUDA_ERROR_OUT_OF_MEMORY")
    if isinstance(address, Exception):
        raise CudaError(f"{size} bytes of scratch: {address}")
    return address
