from __future__ import annotations

from pathlib import Path

import pytest

import attune_bench
from attune_bench.nvrtc import compile_cubin

SOURCE = Path(attune_bench.__file__).with_name("floors.cu").read_text()


def compiled(source, capability):
    pytest.importorskip("cuda.bindings")
    try:
        return compile_cubin(source, capability)
    except RuntimeError as error:
        if "DynamicLibNotFound" in type(error).__name__ or "libnvrtc" in str(error):
            pytest.skip("no NVRTC on this host")
        raise


@pytest.mark.parametrize("capability", [(8, 0), (8, 9), (9, 0)])
def test_the_floors_compile_for_every_kind_of_device(capability):
    assert compiled(SOURCE, capability).startswith(b"\x7fELF")


def test_what_does_not_compile_is_an_error_with_the_compilers_words():
    with pytest.raises(RuntimeError, match='identifier "x" is undefined'):
        compiled("__global__ void f() { x }", (9, 0))
