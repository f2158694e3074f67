"""tests/gpu/flash_attn_upstream.py, with a few tests of its own in FlashAttention's place."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

import attune

pytest.importorskip("torch")

PACKAGE = str(pathlib.Path(attune.__file__).resolve().parents[1])
CLIENT = pathlib.Path(__file__).resolve().parents[2]
TESTS = """
import pytest, torch
from flash_attn import flash_attn_func, flash_attn_qkvpacked_func
from flash_attn.bert_padding import of_the_checkout
from flash_attn.flash_attn_interface import _get_block_size_n

@pytest.mark.parametrize("n", range(9))
def test_values(n):
    assert of_the_checkout
    qkv = torch.randn(1, 4, 3, 2, 8, requires_grad=True)
    out, _, _ = flash_attn_qkvpacked_func(qkv, 0.0, return_attn_probs=True)
    q, k, v = (x.transpose(1, 2) for x in qkv.unbind(2))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
    assert torch.allclose(out, expected, atol=1e-5)
    g = torch.randn_like(out)
    assert torch.allclose(*(torch.autograd.grad(x, qkv, g)[0] for x in (out, expected)), atol=1e-5)

def test_wrong():
    q = torch.ones(1, 1, 1, 8)
    assert (flash_attn_func(q, q, q) == 2).all()

def test_own_skip():
    pytest.skip()

def test_dropout():
    q = torch.ones(1, 1, 1, 8)
    flash_attn_func(q, q, q, 0.17)

def test_flash_attn_bwd_overflow():
    assert False
"""


def test_a_checkouts_tests_are_run_and_judged(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "flash_attn").mkdir()
    (tmp_path / "tests/test_flash_attn.py").write_text(TESTS)
    (tmp_path / "flash_attn/__init__.py").write_text("raise ImportError('this is not the one')")
    (tmp_path / "flash_attn/bert_padding.py").write_text("of_the_checkout = True")
    command = [sys.executable, str(CLIENT / "tests/gpu/flash_attn_upstream.py"), str(tmp_path), "--sample", "3"]
    environment = {**os.environ, "PYTHONPATH": PACKAGE, "ATTUNE_SERVER": f"unix:{tmp_path}/nobody"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[-6:] == [
        "3 passed, 1 failed, 3 skipped",
        "  skipped 1: FlashAttention's own: no reason",
        "  skipped 1: attune: dropout, whose mask the test reads",
        "  skipped 1: attune: a test of gradients, which would be torch's",
        "calls: 0 launched attune's kernels, 4 were computed by torch",
        "  torch 4: device",
    ]


def test_a_checkout_is_asked_for(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, str(CLIENT / "tests/gpu/flash_attn_upstream.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": PACKAGE})
    assert done.returncode == 2
    assert "tests/test_flash_attn.py is not there; CHECKOUT must be one of" in done.stderr
