"""Compiles CUDA C++ and launches it on a stream, through cuda-bindings, which torch itself depends on."""

from __future__ import annotations

import ctypes

POINTER = ctypes.c_void_p
INT = ctypes.c_int
LONG = ctypes.c_longlong

Arguments = tuple[tuple[int, type], ...]  # each a value and its type: POINTER, INT or LONG


def _checked(answer: tuple):
    """What a call gives beside its status; RuntimeError with the status's name when it failed."""
    status, *values = answer
    if int(status) != 0:
        raise RuntimeError(f"{type(status).__name__}: {status.name}")
    return values[0] if len(values) == 1 else values


def compile_cubin(source: str, capability: tuple[int, int]) -> bytes:
    """Code for devices of `capability`, (9, 0) for 9.0. Needs no device. RuntimeError with the compiler's words."""
    from cuda.bindings import nvrtc

    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), b"floors.cu", 0, [], []))
    options = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}".encode(), b"--std=c++17"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(status) != 0:
        log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
        _checked(nvrtc.nvrtcGetProgramLog(program, log))
        raise RuntimeError(f"{status.name}: {log.decode()}")
    cubin = b" " * _checked(nvrtc.nvrtcGetCUBINSize(program))
    _checked(nvrtc.nvrtcGetCUBIN(program, cubin))
    return cubin


class Module:
    """Code loaded into the current context, which must exist; stays loaded while the process lives."""

    def __init__(self, cubin: bytes) -> None:
        from cuda.bindings import driver

        self._driver = driver
        self._module = _checked(driver.cuModuleLoadData(cubin))
        self._functions: dict[str, object] = {}

    def launch(self, entry: str, grid: int, block: int, arguments: Arguments, stream: int) -> None:
        """Queues `grid` blocks of `block` threads on the stream of that handle."""
        if entry not in self._functions:
            self._functions[entry] = _checked(self._driver.cuModuleGetFunction(self._module, entry.encode()))
        values = tuple(value for value, _ in arguments), tuple(kind for _, kind in arguments)
        packed = values if arguments else 0
        _checked(self._driver.cuLaunchKernel(self._functions[entry], grid, 1, 1, block, 1, 1, 0, stream, packed, 0))
