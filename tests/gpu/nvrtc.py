"""A kernel's source compiled by the NVRTC of this host, without a device."""

import ctypes
import functools
import os
import pathlib

ROOTS = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]


def toolkit():
    return next((pathlib.Path(root) for root in ROOTS if root and pathlib.Path(root, "include").exists()), None)


@functools.cache
def library():
    """None where there is none."""
    home = toolkit()
    folders = [str(home / folder) for folder in ("lib64", "lib", "targets/x86_64-linux/lib")] if home else []
    for name in [*(f"{folder}/libnvrtc.so" for folder in folders), "libnvrtc.so.13", "libnvrtc.so.12"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def version():
    major, minor = ctypes.c_int(), ctypes.c_int()
    library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def _bytes(program, what):
    size = ctypes.c_size_t()
    getattr(library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library(), f"nvrtcGet{what}")(program, buffer)
    return buffer.raw[: size.value]


def _text(program, what):
    return _bytes(program, what).decode().rstrip("\0")


def compiled(source, includes, defines, target, options=()):
    """(cubin, PTX, log) of the file `source`, as the daemon compiles it; of a virtual target such as compute_89 an empty
    cubin. ValueError with the compiler's words."""
    given = [f"--gpu-architecture={target}", "--std=c++17", "--device-as-default-execution-space", *options]
    given += [f"--include-path={folder}" for folder in (*includes, toolkit() / "include")]
    given += [f"-D{name}={value}" for name, value in defines.items()]
    program = ctypes.c_void_p()
    library().nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None)
    encoded = (ctypes.c_char_p * len(given))(*[option.encode() for option in given])
    try:
        if library().nvrtcCompileProgram(program, len(given), encoded):
            raise ValueError(_text(program, "ProgramLog"))
        cubin = _bytes(program, "CUBIN") if target.startswith("sm_") else b""
        return cubin, _text(program, "PTX"), _text(program, "ProgramLog")
    finally:
        library().nvrtcDestroyProgram(ctypes.byref(program))


def ptx(source, includes, defines, architecture):
    return compiled(source, includes, defines, f"compute_{architecture}")[1]
