"""Whom attention asks, and what it accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from attune.client import Client
from attune.torch.fallback import warn_again
from attune.values import Policy, Provenance

ACCEPTABLE = (Provenance.EXACT, Provenance.TIE, Provenance.STALE, Provenance.NEAREST)


@dataclass(frozen=True, slots=True)
class Settings:
    """As `configure` describes them."""

    client: Client
    device: str | None
    policy: Policy
    acceptable: tuple[Provenance, ...]
    hold: float


_settings: Settings | None = None
_listeners: list[Callable[[], None]] = []


def configure(
    client: Client | None = None,
    *,
    device: str | None = None,
    policy: Policy | str = Policy.HOT,
    acceptable: Iterable[Provenance | str] = ACCEPTABLE,
    hold: float = 30.0,
) -> None:
    """Sets whom attention asks, from the next call on in every thread, and forgets what was answered before.

    `client`: without one a new one for $ATTUNE_SERVER or localhost:7411, with a deadline of 2 s. `device` is the
    service's name for this process's GPUs, such as "cuda:0"; None finds the one with the same UUID, else the first of
    the same model. `acceptable`: answers of other provenances are not run; HEURISTIC is not among them unless given.
    `hold`: seconds before the service is asked again for a shape that it had no answer for, and before it is asked
    anything again after it could not be reached.
    """
    global _settings
    provenances = tuple(map(Provenance.of, acceptable))
    _settings = Settings(client or Client(deadline=2.0), device, Policy.of(policy), provenances, hold)
    warn_again()
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
