"""Values made from messages: a dataclass's fields are the message's fields of the same name."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

from google.protobuf.message import Message

from attune.problem import Problem
from attune.values.enums import ApiEnum

V = TypeVar("V", bound="Value")


class Value:
    """The base of frozen dataclasses that mirror a message; their annotations say how each field is read."""

    __slots__ = ()

    @classmethod
    def from_message(cls: type[V], message: Message) -> V:
        """`message` as this value. Unset messages are None where the field allows it."""
        return cls(**{name: read(message) for name, read in _readers(cls)})


@functools.cache
def _readers(cls: type[Value]) -> tuple[tuple[str, Callable[[Message], Any]], ...]:
    hints = typing.get_type_hints(cls)
    return tuple(
        (field.name, field.metadata.get("read") or _reader(field.name, hints[field.name]))
        for field in dataclasses.fields(cls)
    )


def reads(read: Callable[[Message], Any]) -> dict[str, Any]:
    """The metadata of a field that mirrors no one field of the message: `read` makes it from the whole message."""
    return {"read": read}


def _reader(name: str, hint: Any) -> Callable[[Message], Any]:
    """Reads field `name`, annotated as `hint`, from a message."""
    if isinstance(hint, types.UnionType):  # X | None
        plain = typing.get_args(hint)[0]
        if plain is bytes:
            return lambda message: getattr(message, name) or None
        convert = _converter(plain)
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    if typing.get_origin(hint) is tuple:  # tuple[X, ...]
        convert = _converter(typing.get_args(hint)[0])
        return lambda message: tuple(map(convert, getattr(message, name)))
    convert = _converter(hint)
    return lambda message: convert(getattr(message, name))


def _converter(hint: Any) -> Callable[[Any], Any]:
    if hint is datetime:
        return lambda timestamp: timestamp.ToDatetime(timezone.utc)
    if hint is timedelta:
        return lambda duration: duration.ToTimedelta()
    if issubclass(hint, (Value, Problem)):
        return hint.from_message
    if issubclass(hint, ApiEnum):
        return hint
    return lambda value: value
