"""Problems as text, as docs/problems.md defines it."""

from __future__ import annotations

import pathlib
import re

import pytest
from golden import golden

from attune import InvalidArgument, Problem

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs/problems.md"
GOLDEN = golden("problem_text")
EXAMPLES = re.findall(r"^(b\d\S+) {2,}\S", DOCUMENT.read_text(), re.MULTILINE)


def test_the_document_has_examples():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("text", [*EXAMPLES, *GOLDEN["canonical"]])
def test_canonical_text_reads_back_as_itself(text):
    assert str(Problem.parse(text)) == text


@pytest.mark.parametrize(("text", "canonical"), GOLDEN["spellings"])
def test_every_other_spelling_is_answered_in_canonical_text(text, canonical):
    assert str(Problem.parse(text)) == canonical
    assert Problem.parse(text) == Problem.parse(canonical)
    assert hash(Problem.parse(text)) == hash(Problem.parse(canonical))


@pytest.mark.parametrize(("text", "message"), GOLDEN["refused"])
def test_an_error_names_the_part_its_value_and_what_is_allowed(text, message):
    with pytest.raises(InvalidArgument) as caught:
        Problem.parse(text)
    assert caught.value.message == message
    assert caught.value.reason == "INVALID_PROBLEM"


@pytest.mark.parametrize("text", ["b1.h1.q" + "9" * 100000 + ".d64.f16", "b" * 100000, "\ud800" * 100000])
def test_an_error_repeats_little_of_what_it_was_given(text):
    with pytest.raises(InvalidArgument) as caught:
        Problem.parse(text)
    assert len(caught.value.message) < 2000


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"batch": 0}, "batch is 0; allowed: 1 to 65536"),
        ({"batch": 2.0}, "batch is 2.0; allowed: 1 to 65536"),
        ({"dtype": "f32"}, "dtype is 'f32'; allowed: f16, bf16"),
        ({"mask": "triangle"}, "mask is 'triangle'; allowed: none, causal, causal-br, window"),
        ({"layout": "bdsh"}, "layout is 'bdsh'; allowed: bhsd, bshd"),
        ({"window": 5}, "window is 5; allowed: 1 to 16777216 with mask window, and 0 otherwise"),
        ({"mask": "window"}, "window is 0; allowed: 1 to 16777216"),
        ({"softcap": -1}, "softcap is -1; allowed: 0 (off) and 0.000001 to 1000000"),
        ({"page_size": -1}, "page_size is -1; allowed: 0 (not paged) and 1 to 65536"),
        ({"page_size": 16.0}, "page_size is 16.0; allowed: 0 (not paged)"),
        ({"page_size": True}, "page_size is True; allowed: 0 (not paged)"),
        ({"kv_dtype": "f16", "dtype": "bf16"}, "kv_dtype is 'f16'; allowed: e4m3, e5m2 and the dtype, which is bf16"),
        ({"varlen": True, "layout": "bhsd"}, "layout is bhsd; with varlen allowed is bshd"),
    ],
)
def test_a_field_that_is_not_allowed_is_named(fields, what):
    with pytest.raises(InvalidArgument, match=re.escape(what)):
        Problem(**{"batch": 1, "heads_q": 1, "seq_q": 8, "head_dim": 8, **fields})


def test_what_is_neither_a_problem_nor_text_is_named():
    with pytest.raises(InvalidArgument, match="problem is 512; it must be a Problem or its text"):
        Problem.of(512)


def test_what_is_left_out_follows_the_queries():
    problem = Problem(batch=2, heads_q=8, seq_q=512, head_dim=64)
    assert (problem.heads_kv, problem.seq_kv) == (8, 512)
    assert problem == Problem.parse("b2.h8.q512.d64.f16")


def test_a_fractional_softcap_is_one_part():
    assert Problem.parse("b1.h8.q512.d64.f16.softcap30.5.lse").softcap == 30.5


def test_the_layout_of_varlen_is_bshd():
    problem = Problem(batch=2, heads_q=1, seq_q=8, head_dim=64, varlen=True)
    assert problem.layout == "bshd"
    assert problem == Problem.parse("b2.h1.q8.d64.f16.varlen") == Problem.parse("b2.h1.q8.d64.f16.varlen.bshd")


@pytest.mark.parametrize(
    "text",
    [
        *EXAMPLES,
        "b1.h8.q7.kv9.d64.bf16.window128.bshd.lse",
        "b3.h4.q7.d32.f16.window3.softcap2.sinks.varlen.page16.lse",
        "b3.h4.q7.d32.f16.kve4m3",
        "b3.h4.q7.d32.bf16.kve5m2",
    ],
)
def test_a_message_carries_every_field(text):
    problem = Problem.parse(text)
    assert Problem.from_message(problem.to_message()) == problem


def test_keys_and_values_of_the_dtype_are_written_in_one_way():
    problem = Problem(batch=2, heads_q=1, seq_q=8, head_dim=64, dtype="bf16", kv_dtype="bf16")
    assert problem == Problem.parse("b2.h1.q8.d64.bf16")


def test_an_unset_field_of_a_message_has_its_default():
    message = Problem.parse("b2.h8.q512.d64.f16").to_message()
    for field in ("operation", "heads_kv", "seq_kv", "dtype", "mask", "layout"):
        message.ClearField(field)
    assert str(Problem.from_message(message)) == "b2.h8.q512.d64.f16"


def test_varlen_in_a_message_is_bshd_unless_it_is_told_otherwise():
    message = Problem.parse("b2.h1.q3.d64.f16.varlen").to_message()
    message.ClearField("layout")
    assert Problem.from_message(message).layout == "bshd"
    message.layout = 1
    with pytest.raises(InvalidArgument, match="layout is bhsd"):
        Problem.from_message(message)


def test_a_dtype_that_only_a_later_version_knows_is_named():
    message = Problem.parse("b2.h8.q512.d64.f16").to_message()
    message.dtype = 9
    with pytest.raises(InvalidArgument, match="dtype 9 is not known to this client"):
        Problem.from_message(message)
