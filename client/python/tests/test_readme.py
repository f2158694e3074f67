"""README.md: its Python runs, one block after the other, with a canned server and on the CPU."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import io
import pathlib
import re

import pytest
from fake import PROBLEM, message, operation, problem, trial, tuned

import attune
import attune.aio
from attune import api

torch = pytest.importorskip("torch")

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
PLAN = f'title: "nightly" shapes {{ problem: "{PROBLEM}" }}'


class Layer(torch.nn.Module):
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(tokens, tokens, tokens)


def half(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.float16)


def ints(*values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def names() -> dict[str, object]:
    """What the text speaks of without making it."""
    q, pages = half(1, 2, 8, 64), half(4, 16, 2, 64)
    return {
        "q": q,
        "k": q,
        "v": q,
        "sinks": torch.zeros(2),
        "model": Layer(),
        "tokens": q,
        "query": half(8, 2, 64),
        "key": half(8, 2, 64),
        "value": half(8, 2, 64),
        "cu_seqlens_q": ints(0, 3, 8),
        "cu_seqlens_k": ints(0, 3, 8),
        "max_seqlen_q": 5,
        "max_seqlen_k": 5,
        "decoded": half(2, 1, 2, 64),
        "key_pages": pages,
        "value_pages": pages,
        "block_table": ints([0, 1], [2, 3]),
        "seqused_k": ints(20, 32),
        "path": "llama",
        "prompt": torch.ones(1, 4, dtype=torch.int64),
    }


def save_llama(path: pathlib.Path) -> None:
    """A small one, where there is transformers."""
    with contextlib.suppress(ImportError):
        import transformers

        sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
        config = transformers.LlamaConfig(**sizes, vocab_size=32, bos_token_id=None, eos_token_id=None, pad_token_id=0)
        transformers.LlamaForCausalLM(config).save_pretrained(path)


@pytest.fixture
def served(server, monkeypatch, tmp_path):
    """`server` with something to say to every call, in place of the one that README.md names."""
    incumbent = message("Incumbent", name="incumbents/3", problem=problem(), policy=1, trial=trial())
    empty = ("PlanSweep", "ListOperations", "RetryTrials", "ListMisses", "ListDevices", "ListIncumbents")
    server.responses |= {name: api.METHODS[name].response() for name in empty}
    server.responses |= {
        "Explain": api.METHODS["Explain"].response(trial=trial()),
        "ListTrials": message("ListTrialsResponse", trials=[trial()]),
        "EvaluateVariant": operation(1),
        "Unpin": incumbent,
        "RollBack": incumbent,
        "WatchOperation": [operation(2), tuned()],
    }
    for module in (attune, attune.aio):
        kind = module.Client
        monkeypatch.setattr(module, "Client", lambda address, kind=kind, **given: kind(server.address, **given))
    monkeypatch.setattr(attune, "load", lambda answer: lambda q, k, v: torch.empty_like(q))  # there is no GPU
    (tmp_path / "nightly.textproto").write_text(PLAN)
    save_llama(tmp_path / "llama")
    monkeypatch.chdir(tmp_path)
    try:
        import matplotlib
    except ImportError:  # plots are tested where it is
        monkeypatch.setattr(attune, "plot_trials", lambda trials, parameter: None)
    else:
        matplotlib.use("Agg")
    yield server
    attune.refresh()


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_the_examples_run(served):
    given = names()
    for block in BLOCKS:
        if "attune.transformers" in block and importlib.util.find_spec("transformers") is None:
            continue
        code = compile(
            block, str(README), "exec", flags=inspect.CO_NESTED | __import__("ast").PyCF_ALLOW_TOP_LEVEL_AWAIT
        )
        with contextlib.redirect_stdout(io.StringIO()) as printed, torch.no_grad():
            result = eval(code, given)
            if inspect.iscoroutine(result):
                asyncio.run(result)
        if "max_time=0" in block:
            assert printed.getvalue().startswith("max_time is 0; it must be None (no limit), or a number of seconds")
    assert len(BLOCKS) >= 12
    assert {name for name, _ in served.requests} >= {
        *("GetBest", "Tune", "Explain", "ListTrials", "PlanSweep", "ListOperations", "EvaluateVariant", "Unpin"),
        *("RollBack", "RetryTrials", "ListMisses", "WatchOperation"),
    }


def test_every_link_leads_somewhere():
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []


def test_every_file_that_is_named_is_there():
    named = re.findall(r"`((?:tests|examples)/[\w/.]+)", README.read_text())
    assert [name for name in named if not (README.parent / name).exists()] == []
