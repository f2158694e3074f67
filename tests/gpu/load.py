#!/usr/bin/env python3
"""Keeps a GPU computing until it is ended or its parent is gone: python3 tests/gpu/load.py [--busy S --idle S]

Products of half-precision matrices, by torch or else CuPy. Prints "busy" once it computes.
"""

import argparse
import os
import time

SIZE = 4096
AT_ONCE = 20  # queued between two looks at the clock: a few ms
LONGEST_S = 1800  # whoever forgets to end it


def with_torch(device):
    import torch

    torch.cuda.set_device(device)
    a = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16)
    return lambda: a @ a, torch.cuda.synchronize


def with_cupy(device):
    import cupy

    cupy.cuda.Device(device).use()
    a = cupy.random.standard_normal((SIZE, SIZE), dtype=cupy.float32).astype(cupy.float16)
    return lambda: a @ a, cupy.cuda.Device(device).synchronize


def work_of(device):
    """One product, and what waits for those that were queued."""
    try:
        return with_torch(device)
    except ImportError:
        return with_cupy(device)


def compute(multiply, synchronize, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(AT_ONCE):
            multiply()
        synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=int, default=0, help="of the GPU, among those that this process sees")
    parser.add_argument("--busy", type=float, default=0.2, help="seconds at a time")
    parser.add_argument("--idle", type=float, default=0, help="seconds between them")
    options = parser.parse_args()
    parent, end = os.getppid(), time.monotonic() + LONGEST_S
    multiply, synchronize = work_of(options.index)
    compute(multiply, synchronize, 0.1)
    print("busy", flush=True)
    while os.getppid() == parent and time.monotonic() < end:
        compute(multiply, synchronize, options.busy)
        time.sleep(options.idle)


if __name__ == "__main__":
    main()
