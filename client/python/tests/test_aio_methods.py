"""Client and aio.Client."""

from __future__ import annotations

import inspect

import pytest

import attune
import attune.aio


def methods(kind):
    return {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}


def test_have_the_same_methods():
    assert methods(attune.Client) == methods(attune.aio.Client)


@pytest.mark.parametrize("name", sorted(methods(attune.Client)))
def test_methods_have_the_same_arguments_and_words(name):
    sync, awaited = getattr(attune.Client, name), getattr(attune.aio.Client, name)
    assert inspect.signature(sync).parameters == inspect.signature(awaited).parameters
    assert sync.__doc__
    assert awaited.__doc__


def test_only_the_async_one_is_to_be_awaited():
    assert inspect.iscoroutinefunction(attune.aio.Client.best)
    assert not inspect.iscoroutinefunction(attune.Client.best)


def test_help_shows_what_a_method_takes():
    assert str(inspect.signature(attune.Client("l4:7411").trial)) == "(name: 'str | int') -> 'Trial'"
