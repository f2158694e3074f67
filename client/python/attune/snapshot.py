"""A server's served incumbents in one file, to answer from when the server cannot be reached.

The file is the C++ client's (client/cpp/snapshot.h), format version 1, integers little-endian:

    offset  0   8 bytes   "ATTNSNAP"
            8   4 bytes   version, 1
           12   4 bytes   number of answers
           16   8 bytes   when it was exported, seconds since 1970-01-01 UTC
           24  32 bytes   SHA-256 over bytes 0..23 and everything from byte 56 on
           56             messages, each as a varint length and that many bytes: one ListDevicesResponse, then for
                          each answer a GetBestRequest (what it answers) and its GetBestResponse

Answers with an objective stand before the fastest of the same problem: who knows of no objectives takes the last.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
from collections.abc import Iterator, Sequence

from google.protobuf.message import DecodeError, Message

from attune import api
from attune.cache import AnswerKey, unless_time
from attune.clock import utc_text
from attune.errors import DataLoss, FailedPrecondition, InvalidArgument, NotFound
from attune.problem import Problem
from attune.values import Answer, Axis, Objective, Policy
from attune.values.domain import AXES, Range, find_range, range_key

_MAGIC = b"ATTNSNAP"
_VERSION = 1
_HEADER = struct.Struct("<8sIIq")
_BODY_OFFSET = _HEADER.size + hashlib.sha256().digest_size


class Snapshot:
    """Immutable once made, so thread-safe. `answers` are pairs of GetBestRequest and GetBestResponse."""

    def __init__(self, exported: int, devices: Message, answers: Sequence[tuple[Message, Message]]) -> None:
        self.exported = exported  # seconds since 1970-01-01 UTC
        self.devices = devices
        self.answers = tuple(answers)
        self._index: dict[AnswerKey, Message] = {}
        self._ranges: dict[tuple, list[Range[Message]]] = {}  # by range_key
        for request, answer in self.answers:
            try:
                problem = Problem.from_message(request.problem)
            except InvalidArgument:
                continue  # a shape that only a later version knows: nobody can ask for it here
            objective = unless_time(Objective(request.objective))
            key = AnswerKey(problem, request.device_id, Policy(request.policy), objective)
            self._index[key] = answer
            for domain in answer.domains:
                axis = Axis(domain.axis)
                if axis in AXES:
                    ends = (domain.low, domain.high, answer)
                    self._ranges.setdefault(range_key(axis, problem, _where(key)), []).append(ends)

    def find(self, key: AnswerKey) -> Answer | None:
        """The answer as the server gave it, its provenance_detail saying that it comes from a snapshot, and of when.

        An empty device_id means the first of `devices`; a UUID or a class's alias will do as well. A problem without an
        answer of its own has that of the first range it lies in (Answer.at): by AXES, then as the file has them. By an
        objective that has no answer here the fastest is found, and the detail says so.
        """
        found = self._find(key)
        if found is not None or key.objective is Objective.UNSPECIFIED:
            return found
        fastest = self._find(key._replace(objective=Objective.UNSPECIFIED))
        name = "energy-delay product" if key.objective is Objective.EDP else "energy"
        return fastest and fastest.with_source(f"chosen by time: it has none with the least {name}")

    def _find(self, key: AnswerKey) -> Answer | None:
        if not key.device_id and self.devices.devices:
            key = key._replace(device_id=self.devices.devices[0].id)
        answer = self._answer(key)
        for device in self.devices.devices if answer is None else ():
            if key.device_id in (device.uuid, device.class_alias):
                answer = self._answer(key._replace(device_id=device.id))
                break
        return None if answer is None else answer.with_source(f"from the snapshot of {utc_text(self.exported)}")

    def _answer(self, key: AnswerKey) -> Answer | None:
        message = self._index.get(key)
        if message is not None:
            return Answer.from_message(message)
        near = find_range(self._ranges, key.problem, _where(key))
        try:
            return None if near is None else Answer.from_message(near).at(key.problem)
        except InvalidArgument:
            return None  # a range that does not fit its recipe

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes a temporary file beside `path`, then renames it: readers see the old file or the new one, whole."""
        messages = [self.devices, *(message for pair in self.answers for message in pair)]
        body = b"".join(_delimited(message.SerializeToString()) for message in messages)
        header = _HEADER.pack(_MAGIC, _VERSION, len(self.answers), self.exported)
        _replace_file(os.fspath(path), header + hashlib.sha256(header + body).digest() + body)


def _where(key: AnswerKey) -> tuple[str, Policy, Objective]:
    return key.device_id, key.policy, key.objective


def load(path: str | os.PathLike[str]) -> Snapshot:
    """DataLoss when the file is damaged, FailedPrecondition when another version wrote it, NotFound without one."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise NotFound(f"there is no snapshot '{path}'") from None
    if len(data) < _BODY_OFFSET or not data.startswith(_MAGIC):
        raise _damaged(path, "it does not begin as a snapshot does")
    header, digest, body = data[: _HEADER.size], data[_HEADER.size : _BODY_OFFSET], data[_BODY_OFFSET:]
    _, version, count, exported = _HEADER.unpack(header)
    if version != _VERSION:
        raise FailedPrecondition(
            f"snapshot '{path}' has format version {version}; this program reads version {_VERSION}"
        )
    if hashlib.sha256(header + body).digest() != digest:
        raise _damaged(path, "its SHA-256 does not match")
    parts = _split(body)
    try:
        devices = api.message("ListDevicesResponse").FromString(next(parts))
        answers = [
            (
                api.message("GetBestRequest").FromString(next(parts)),
                api.message("GetBestResponse").FromString(next(parts)),
            )
            for _ in range(count)
        ]
    except (StopIteration, DecodeError):
        raise _damaged(path, f"it holds fewer than {count} answers") from None
    return Snapshot(exported, devices, answers)


def _damaged(path: str | os.PathLike[str], why: str) -> DataLoss:
    return DataLoss(f"snapshot '{path}' is damaged: {why}")


def _delimited(message: bytes) -> bytes:
    length = len(message)
    varint = bytearray()
    while length >= 0x80:
        varint.append(length & 0x7F | 0x80)
        length >>= 7
    varint.append(length)
    return bytes(varint) + message


def _split(body: bytes) -> Iterator[bytes]:
    """The delimited messages of `body`, as far as they are whole."""
    at = 0
    while at < len(body):
        length = shift = 0
        while at < len(body):
            byte = body[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if at + length > len(body):
            return
        yield body[at : at + length]
        at += length


def _replace_file(path: str, contents: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=f"{os.path.basename(path)}.", dir=os.path.dirname(path) or ".")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(contents)
            os.fchmod(descriptor, 0o644)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
