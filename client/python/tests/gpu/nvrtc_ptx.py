"""Kernels of tests, compiled where they run."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


def compiled(source: bytes) -> bytes:
    """PTX of `source` for this GPU."""
    from cuda.bindings import nvrtc

    major, minor = torch.cuda.get_device_capability()
    result, program = nvrtc.nvrtcCreateProgram(source, b"test.cu", 0, [], [])
    assert int(result) == 0
    (result,) = nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=compute_{major}{minor}".encode()])
    assert int(result) == 0
    _, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = bytearray(size)
    nvrtc.nvrtcGetPTX(program, ptx)
    return bytes(ptx)
