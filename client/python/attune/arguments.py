"""What callers give: numbers, lists and requests, or an InvalidArgument that names the argument, its value and what is
allowed."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from datetime import timedelta
from numbers import Real
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from attune.errors import InvalidArgument

_LONGEST_S = 315_576_000_000  # of google.protobuf.Duration
_LARGEST = (1 << 31) - 1
_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}
_KINDS = {
    FieldDescriptor.CPPTYPE_STRING: "a str",
    FieldDescriptor.CPPTYPE_BOOL: "a bool",
    FieldDescriptor.CPPTYPE_DOUBLE: "a number",
    FieldDescriptor.CPPTYPE_FLOAT: "a number",
}
# What arguments are called that the API calls otherwise.
_CALLED = {"device_id": "device", "parent": "sweep", "include_artifact": "artifact", "include_domains": "domains"}


def seconds(name: str, value: object, *, above: float | None = None, least: float = 0.0, unset: str = "") -> float:
    """`value`, a number of seconds or a timedelta, as the former: above `above`, or at least `least`. `unset` says what
    else is allowed."""
    found = value.total_seconds() if isinstance(value, timedelta) else value
    if is_number(found) and found <= _LONGEST_S and (found >= least if above is None else found > above):
        return float(found)
    words = f"at least {least:g}" if above is None else f"above {above:g}"
    allowed = f"a number of seconds or a timedelta, {words} and at most {_LONGEST_S}"
    raise InvalidArgument(f"{name} is {value!r}; it must be {unset + ', or ' if unset else ''}{allowed}")


def count(name: str, value: object, *, unset: str = "") -> int:
    """`value`, a positive integer."""
    try:
        found = 0 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        found = 0
    if not 1 <= found <= _LARGEST:
        allowed = f"a positive integer, at most {_LARGEST}"
        raise InvalidArgument(f"{name} is {value!r}; it must be {unset + ' or ' if unset else ''}{allowed}")
    return found


def several(name: str, values: object, example: str) -> list[Any]:
    """`values` as a list; a str is none, though its characters could be iterated over."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidArgument(f"{name} is {values!r}; it must be a sequence, such as [{example}]")
    return list(values)


def is_number(value: object) -> bool:
    """Whether it is a real number, and no NaN."""
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


def request(kind: type[Message], fields: Mapping[str, Any]) -> Message:
    """A message of `fields`; messages in it may be dicts."""
    try:
        return kind(**fields)
    except (TypeError, ValueError):
        _check(kind, fields)
        raise


def _check(kind: type[Message], fields: Mapping[str, Any]) -> None:
    """Names the field that cannot be."""
    for name, value in fields.items():
        try:
            kind(**{name: value})
        except (TypeError, ValueError):
            described = kind.DESCRIPTOR.fields_by_name[name]
            if isinstance(value, Mapping):
                _check(message_factory.GetMessageClass(described.message_type), value)
            allowed = _allowed(described)
            raise InvalidArgument(f"{_CALLED.get(name, name)} is {value!r}; it must be {allowed}") from None


def _allowed(field: FieldDescriptor) -> str:
    if field.cpp_type in _INTEGERS:
        low, high = _INTEGERS[field.cpp_type]
        one = f"an integer from {low} to {high}"
    else:
        one = _KINDS.get(field.cpp_type, f"of type {field.name}")
    return f"a sequence, each {one}" if _is_repeated(field) else one


def _is_repeated(field: FieldDescriptor) -> bool:
    known = getattr(field, "is_repeated", None)  # since protobuf 6, which has no label any more
    return field.label == field.LABEL_REPEATED if known is None else known
