"""Whom attention asks, and what it accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from attune.arguments import is_number, several
from attune.client import Client
from attune.errors import InvalidArgument
from attune.values import Policy, Provenance

ACCEPTABLE = (Provenance.EXACT, Provenance.TIE, Provenance.STALE, Provenance.NEAREST)


@dataclass(frozen=True, slots=True)
class Settings:
    """As `configure` describes them."""

    client: Client
    device: str | None
    policy: Policy
    acceptable: tuple[Provenance, ...]
    hold: float = 30.0
    wait: float = 0.0
    revalidate: float = 20.0
    never_slower: bool = True


_settings: Settings | None = None
_listeners: list[Callable[[], None]] = []


def configure(
    client: Client | None = None,
    *,
    device: str | None = None,
    policy: Policy | str = Policy.HOT,
    acceptable: Iterable[Provenance | str] = ACCEPTABLE,
    hold: float = 30.0,
    wait: float = 0.0,
    revalidate: float = 20.0,
    never_slower: bool = True,
) -> None:
    """Sets whom attention asks, from the next call on in every thread, and forgets what was answered before.

    `client`: without one a new one for the default server, with a deadline of 2 s. `device` is the
    service's name for this process's GPUs, such as "cuda:0"; None finds the one with the same UUID, else the first of
    the same model. `acceptable`: answers of other provenances are not run; HEURISTIC is not among them unless given.

    The service is asked by one background thread, never by a call. Times are seconds. `wait`: how long a call of a
    shape that was not asked for before waits for the answer; 0 computes it by SDPA and takes the kernel once it is
    there (attune.warm waits for all of them at once). `hold`: before the service is asked again for a shape that it had
    no answer for, twice as long each time up to eight times that, and the longest time between attempts to reach a
    service that could not be reached. `revalidate`: between looks at what the service serves, after which new answers
    and roll-backs are in force here.

    `never_slower`: calls that SDPA could compute run a kernel only once it is known to be at least 2 % faster. Where
    the service has no time of SDPA recorded that says so, the first calls of a shape, some 20 to 40, are computed by
    one and the other in turn, timed by events on their stream, and the winner computes from then on. False: every call
    that a kernel computes is the kernel's.
    """
    global _settings
    if client is not None and not isinstance(client, Client):
        raise InvalidArgument(f"client is {client!r}; it must be an attune.Client, or None")
    if device is not None and not isinstance(device, str):
        raise InvalidArgument(f"device is {device!r}; it must be the service's name for it, such as 'cuda:0', or None")
    provenances = tuple(map(Provenance.of, several("acceptable", acceptable, "'EXACT'")))
    for name, seconds, least in (("hold", hold, 0), ("wait", wait, 0), ("revalidate", revalidate, 1)):
        if not is_number(seconds) or seconds < least:
            raise InvalidArgument(f"{name} is {seconds!r}; it must be a number of seconds, at least {least}")
    whom = client or Client(deadline=2.0), device, Policy.of(policy), provenances
    _settings = Settings(*whom, hold, wait, revalidate, bool(never_slower))
    for listener in _listeners:
        listener()


def settings() -> Settings:
    """The settings in force; those of `configure()` when nobody called it."""
    if _settings is None:
        configure()
    assert _settings is not None
    return _settings


def on_change(listener: Callable[[], None]) -> None:
    """`listener` is called after each change, in the thread that made it."""
    _listeners.append(listener)


def renew_locks() -> None:
    """In the child of a fork."""
    if _settings is not None:
        _settings.client.lookup.renew_locks()
