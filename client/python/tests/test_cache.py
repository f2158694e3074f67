"""Answers kept in the process."""

from __future__ import annotations

from fake import answer

from attune import Policy, Problem
from attune.cache import AnswerCache, AnswerKey, Entry
from attune.values import Answer

ANSWER = Answer.from_message(answer())


def key(batch):
    return AnswerKey(Problem(batch=batch, heads_q=1, seq_q=8, head_dim=8), "", Policy.HOT)


def entry(expires=10.0, with_artifact=False):
    return Entry(ANSWER, with_artifact, 0.0, expires)


def test_an_answer_is_found_until_it_expires():
    cache = AnswerCache(4)
    cache.put(key(1), entry(expires=10.0))
    assert cache.find(key(1), False, 9.9) is ANSWER
    assert cache.find(key(1), False, 10.0) is None
    assert cache.find_even_expired(key(1)).answer is ANSWER


def test_an_answer_without_its_artifact_is_none_for_who_needs_it():
    cache = AnswerCache(4)
    cache.put(key(1), entry(with_artifact=False))
    assert cache.find(key(1), True, 0.0) is None


def test_the_answer_that_has_been_there_longest_makes_room():
    cache = AnswerCache(2)
    cache.put(key(1), entry())
    cache.put(key(2), entry())
    cache.put(key(1), entry())
    cache.put(key(3), entry())
    assert len(cache) == 2
    assert cache.find_even_expired(key(2)) is None
    assert cache.find_even_expired(key(1)) is not None


def test_no_capacity_is_no_cache():
    cache = AnswerCache(0)
    cache.put(key(1), entry())
    assert len(cache) == 0
