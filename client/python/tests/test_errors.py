"""Errors as exceptions."""

from __future__ import annotations

import pickle

import grpc
import pytest

from attune import errors


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("INVALID_ARGUMENT", errors.InvalidArgument),
        ("NOT_FOUND", errors.NotFound),
        ("FAILED_PRECONDITION", errors.FailedPrecondition),
        ("DATA_LOSS", errors.DataLoss),
        ("CANCELLED", errors.Cancelled),
        ("UNAVAILABLE", errors.Unreachable),
        ("DEADLINE_EXCEEDED", errors.Unreachable),
        ("INTERNAL", errors.AttuneError),
    ],
)
def test_a_code_has_its_exception(code, kind):
    error = errors.make(code, "what")
    assert type(error) is kind
    assert error.code == code


def test_codes_have_grpcs_names():
    for code in grpc.StatusCode:
        assert errors.code_name(code.value[0]) == code.name
    assert errors.code_name(99) == "UNKNOWN"


def test_the_builtin_exceptions_catch_their_kind():
    assert issubclass(errors.InvalidArgument, ValueError)
    assert issubclass(errors.NotFound, LookupError)


def test_an_error_survives_pickling():
    error = errors.NotFound("gone", reason="NO_DEVICE", metadata={"device": "cuda:9"})
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.reason, copy.metadata) == (
        errors.NotFound,
        "gone [NO_DEVICE device=cuda:9]",
        "NO_DEVICE",
        {"device": "cuda:9"},
    )
