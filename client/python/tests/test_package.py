"""The package as it is imported."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

import attune


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_attune_imports_nothing_heavy():
    heavy = run("import attune, sys; print(*sorted({'grpc', 'google.protobuf', 'numpy', 'torch'} & {*sys.modules}))")
    assert heavy.strip() == ""


def test_a_client_needs_neither_torch_nor_numpy():
    heavy = run("import attune, sys; attune.Client, attune.aio.Client; print(*({'numpy', 'torch'} & {*sys.modules}))")
    assert heavy.strip() == ""


@pytest.mark.parametrize("name", ["Client", "Problem", "Answer", "Policy", "Unreachable", "plot_trials", "aio", "api"])
def test_names_are_there_when_they_are_used(name):
    assert getattr(attune, name)
    assert name in dir(attune)


def test_without_torch_it_says_what_is_missing():
    said = run("""
import sys
sys.modules["torch"] = None
import attune
for name in ("attention", "replace_sdpa", "flash_attn"):
    try:
        getattr(attune, name)
    except ImportError as error:
        print(error)
""").splitlines()
    for name, line in zip(("attention", "replace_sdpa", "flash_attn"), said, strict=True):
        assert line == f"attune.{name} needs PyTorch: pip install 'attune-attention[torch]'"


def test_a_name_that_is_none_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'attune' has no attribute 'Clint'"):
        attune.Clint  # noqa: B018


def test_the_distribution_has_the_client_and_no_other_program():
    files = importlib.metadata.files("attune-attention")
    assert {file.parts[0] for file in files if file.suffix == ".py"} == {"attune"}
    assert not [file for file in files if "bench" in file.as_posix()]
