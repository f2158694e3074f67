"""The public API's messages and methods, made at run time from the descriptor set that the build put beside this file.

`api.message("GetBestRequest")` is a message class of proto/attune/v1; `api.METHODS["GetBest"]` says how it is called.
They live in a descriptor pool of their own, so that nothing else in the process can collide with them, and no
generated code ties the package to one version of protobuf.
"""

from __future__ import annotations

import functools
import importlib.resources
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

PACKAGE = "attune.v1"
SERVICES = (f"{PACKAGE}.AttuneService", f"{PACKAGE}.BlobService")


def _read_pool() -> descriptor_pool.DescriptorPool:
    resource = importlib.resources.files("attune") / "api.binpb"
    try:
        data = resource.read_bytes()
    except FileNotFoundError:
        raise ImportError(
            f"attune: '{resource}' is missing; it is made when the package is built: pip install ./client/python"
        ) from None
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _read_pool()


@functools.cache
def message(name: str) -> type[Message]:
    """The class of message `name`: "Problem" of attune.v1, or a full name such as "google.rpc.Status"."""
    full = name if name.startswith("google.") else f"{PACKAGE}.{name}"
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(full))


def duration(seconds: float) -> Message:
    """A google.protobuf.Duration, to the nanosecond."""
    whole = math.floor(seconds)
    return message("google.protobuf.Duration")(seconds=whole, nanos=min(round((seconds - whole) * 1e9), 999_999_999))


def enum_numbers(name: str) -> dict[str, int]:
    """The values of enum `name` of attune.v1 ("Policy", "Strategy.Kind"): name without its prefix -> number."""
    values = _POOL.FindEnumTypeByName(f"{PACKAGE}.{name}").values
    prefix = values[0].name.removesuffix("UNSPECIFIED")
    return {value.name.removeprefix(prefix): value.number for value in values}


@dataclass(frozen=True, slots=True)
class Method:
    """One rpc of a service: its path on the wire and its message classes."""

    path: str
    request: type[Message]
    response: type[Message]
    streams: bool  # the server answers with a stream

    def stub(self, channel: Any) -> Any:
        """The callable of `channel`, a grpc.Channel or a grpc.aio.Channel."""
        make = channel.unary_stream if self.streams else channel.unary_unary
        return make(
            self.path, request_serializer=self.request.SerializeToString, response_deserializer=self.response.FromString
        )


def _methods() -> Mapping[str, Method]:
    return MappingProxyType(
        {
            method.name: Method(
                path=f"/{service}/{method.name}",
                request=message_factory.GetMessageClass(method.input_type),
                response=message_factory.GetMessageClass(method.output_type),
                streams=method.server_streaming,
            )
            for service in SERVICES
            for method in _POOL.FindServiceByName(service).methods
        }
    )


METHODS = _methods()
