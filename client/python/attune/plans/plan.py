"""A plan is all of a client's method that is not I/O: it yields the calls to make and is sent their answers.

Client and aio.Client each carry plans out in their own way, so that no method is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf.message import Message

from attune import api, arguments
from attune.errors import AttuneError
from attune.table import Table

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one method of the service; whoever makes it sends the response into the plan, or throws its error."""

    method: str
    request: Message
    retries: bool = True  # False: doing it twice is not doing it once
    outdates_answers: bool = False  # it changes what is served, so what is cached may no longer be the best
    wait: float = 0.0  # seconds that the server was asked to wait for something; the deadline begins after them


Plan = Generator[Call, Message, T]

_LARGEST_PAGE = 1000


def advance(plan: Plan[Any], outcome: Message | AttuneError | None) -> Call:
    """The next call of a plan whose last one came to `outcome`, None to begin; StopIteration holds what it returns."""
    return plan.throw(outcome) if isinstance(outcome, AttuneError) else plan.send(outcome)


def call(method: str, *, retries: bool = True, outdates_answers: bool = False, **fields: Any) -> Plan[Message]:
    """The response of `method`, asked with a request of `fields`."""
    return (yield Call(method, arguments.request(api.METHODS[method].request, fields), retries, outdates_answers))


def pages(method: str, field: str, read: Callable[[Message], T], limit: int | None, **fields: Any) -> Plan[Table[T]]:
    """The entries of every page's `field`, at most `limit` of them when there is one."""
    if limit is not None:
        limit = arguments.count("limit", limit, unset="None")
    entries: list[T] = []
    token = ""
    while True:
        wanted = _LARGEST_PAGE if limit is None else min(_LARGEST_PAGE, limit - len(entries))
        page = yield from call(method, page_size=wanted, page_token=token, **fields)
        entries.extend(map(read, getattr(page, field)))
        token = page.next_page_token
        if not token or (limit is not None and len(entries) >= limit):
            return Table(entries[:limit])


def resource(collection: str, name: str | int) -> str:
    """ "trials/12" from "trials/12", "12" or 12."""
    text = str(name)
    return text if text.startswith(f"{collection}/") else f"{collection}/{text}"
