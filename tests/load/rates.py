"""Rates of two sides that were measured in turn, and how they compare."""

import random
import statistics


def ratio(ones, others):
    """Of the medians, and 2.5 % and 97.5 % of 2,000 resamplings of the rounds, both sides of a round together."""
    draw = random.Random(1)
    rounds = range(len(ones))
    drawn = []
    for _ in range(2000):
        chosen = [draw.choice(rounds) for _ in rounds]
        drawn.append(statistics.median(ones[i] for i in chosen) / statistics.median(others[i] for i in chosen))
    drawn.sort()
    return statistics.median(ones) / statistics.median(others), drawn[50], drawn[1949]
