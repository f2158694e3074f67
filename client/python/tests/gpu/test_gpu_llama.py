"""transformers' Llama under attune.replace_sdpa, as serving engines use it: compiled, in CUDA graphs, in threads, after
a fork, without memory for scratch."""

from __future__ import annotations

import contextlib
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gpu_problems import DEVICE

import attune

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from attune.background.settings import ACCEPTABLE  # noqa: E402
from attune.cuda import device as devices  # noqa: E402
from attune.torch import memory  # noqa: E402

LAYERS = 2
BATCH, PROMPT, TOKENS = 2, 300, 24
VOCABULARY = 512
TOLERANCE = 2e-2  # of the logits' norm: what bf16 leaves of it through the layers

Model = Callable[..., Any]


@pytest.fixture(scope="module")
def model() -> Model:
    config = transformers.LlamaConfig(
        hidden_size=512,
        intermediate_size=512,
        num_hidden_layers=LAYERS,
        num_attention_heads=8,
        num_key_value_heads=2,
        vocab_size=VOCABULARY,
        attn_implementation="sdpa",
    )
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).bfloat16().cuda().eval()


@pytest.fixture(autouse=True)
def configured(client_of_any: attune.Client) -> Iterator[None]:
    """Every call is attune's, tuned or not."""
    acceptable = (*ACCEPTABLE, attune.Provenance.HEURISTIC)
    attune.configure(client_of_any, device=DEVICE, acceptable=acceptable, wait=120.0, never_slower=False)
    with torch.inference_mode():
        yield
    attune.refresh()


@pytest.fixture
def maskless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Llama says is_causal when it is compiled (before torch 2.14) or captured without a cache, too, as an eager one
    does: it may not read there whether its positions are packed sequences', and makes a mask, which is SDPA's."""
    module = transformers.models.llama.modeling_llama
    monkeypatch.setattr(module, "create_causal_mask", lambda *args, **options: None)


@pytest.fixture
def graphs() -> Iterator[Callable[[], int]]:
    """How many graphs torch.compile has made since."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield lambda: torch._dynamo.utils.counters["stats"]["unique_graphs"]
    torch._dynamo.reset()


def text(batch: int = BATCH, length: int = PROMPT, seed: int = 0) -> Any:
    return torch.randint(VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(seed)).cuda()


def logits(model: Model, tokens: Any) -> Any:
    return model(tokens, use_cache=False).logits


def generated(model: Model, prompt: Any, given: list[Any] | None = None) -> list[Any]:
    """Logits of each token; fed with the choices of `given` ones."""
    cache, found, step = None, [], prompt
    for index in range(TOKENS):
        out = model(input_ids=step, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache = out.past_key_values
        found.append(out.logits[:, -1])
        step = (given or found)[index].argmax(-1, keepdim=True)
    return found


def close(found: Any, expected: Any) -> None:
    error = (found.float() - expected.float()).norm() / expected.float().norm()
    assert error < TOLERANCE


def test_generating_launches_every_call(model: Model) -> None:
    expected = generated(model, text())
    with attune.replace_sdpa() as replaced:
        found = generated(model, text(), expected)
    close(torch.cat(found), torch.cat(expected))
    assert (replaced.stats.launched, replaced.stats.fallbacks) == (LAYERS * TOKENS, {})


def test_compiled_whole_it_compiles_once(model: Model, maskless: None, graphs: Callable[[], int]) -> None:
    expected = [logits(model, text(seed=seed)) for seed in range(3)]
    compiled, made = torch.compile(model, fullgraph=True), []
    for seed in range(3):
        with attune.replace_sdpa() as replaced:
            close(logits(compiled, text(seed=seed)), expected[seed])
        assert (replaced.stats.launched, replaced.stats.fallbacks) == (LAYERS, {})
        made.append(graphs())
    assert made == [1, 1, 1]


def test_a_compiled_model_that_makes_masks_is_sdpas(model: Model, graphs: Callable[[], int]) -> None:
    expected = logits(model, text())
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with attune.replace_sdpa():
        for _ in range(2):
            close(logits(compiled, text()), expected)
    assert graphs() == 1


def test_nested_blocks_and_other_threads_compile_nothing_more(
    model: Model, maskless: None, graphs: Callable[[], int]
) -> None:
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    in_thread: list[Any] = []

    def work() -> None:
        with torch.inference_mode(), attune.replace_sdpa():
            in_thread.append(logits(compiled, text()))
            torch.cuda.current_stream().synchronize()

    with attune.replace_sdpa():
        expected = logits(compiled, text())
        with attune.replace_sdpa() as inner:
            close(logits(compiled, text()), expected)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    close(in_thread[0], expected)
    assert inner.stats.launched == LAYERS
    assert graphs() == 1


def test_compiled_for_any_length_it_compiles_once(model: Model, maskless: None, graphs: Callable[[], int]) -> None:
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    made = []
    for length in (300, 301, 417):
        expected = logits(model, text(length=length))
        with attune.replace_sdpa() as replaced:
            close(logits(compiled, text(length=length)), expected)
        assert replaced.stats.launched == LAYERS
        made.append(graphs())
    assert made == [1, 1, 1]


def test_captured_and_replayed_with_other_tokens(model: Model, maskless: None) -> None:
    tokens = text()
    with attune.replace_sdpa() as replaced:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            logits(model, tokens)
        torch.cuda.current_stream().wait_stream(side)
        before = replaced.stats.launched
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = logits(model, tokens)
        assert replaced.stats.launched - before == LAYERS
    for seed in (1, 2):
        tokens.copy_(text(seed=seed))
        graph.replay()
        close(found, logits(model, text(seed=seed)))


def test_threads_generate_at_once(model: Model) -> None:
    prompts = [text(seed=seed) for seed in range(4)]
    expected = [generated(model, prompt) for prompt in prompts]
    failures: list[str] = []
    launched: list[int] = []

    def work(index: int) -> None:
        try:
            with torch.inference_mode(), torch.cuda.stream(torch.cuda.Stream()), attune.replace_sdpa() as replaced:
                found = generated(model, prompts[index], expected[index])
                torch.cuda.current_stream().synchronize()
                close(torch.cat(found), torch.cat(expected[index]))
            launched.append(replaced.stats.launched)
        except BaseException:
            failures.append(traceback.format_exc())

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert launched == [LAYERS * TOKENS] * 4


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """torch's own threads do not survive a fork: a child that hands them work waits for ever."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def test_a_forked_child_leaves_the_parent_as_it_was(model: Model) -> None:
    """CUDA itself works in no forked child: what the child may do is call attention on the CPU, and end."""
    with attune.replace_sdpa() as replaced, one_thread():
        expected = logits(model, text())
        child = os.fork()
        if child == 0:
            code = 1
            try:
                q = torch.randn(1, 2, 8, 16)
                out = torch.nn.functional.scaled_dot_product_attention(q, q, q)
                code = 0 if out.shape == q.shape else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        close(logits(model, text()), expected)
    assert replaced.stats.launched == 2 * LAYERS


def test_no_memory_for_scratch_leaves_torch(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every allocation of scratch fails: what needs none launches, the rest is torch's, and all of it right."""
    expected = generated(model, text(batch=1, length=3000))

    def none_left(device: int, size: int, stream: int) -> int:
        return memory.allocate(device, 1 << 50, stream)

    monkeypatch.setattr(devices, "_memory", none_left)
    with torch.cuda.stream(torch.cuda.Stream()), attune.replace_sdpa() as replaced:
        found = generated(model, text(batch=1, length=3000), expected)
    torch.cuda.synchronize()
    close(torch.cat(found), torch.cat(expected))
    assert set(replaced.stats.fallbacks) <= {"not_launched"}
    assert replaced.stats.launched + replaced.stats.fell_back == LAYERS * TOKENS
