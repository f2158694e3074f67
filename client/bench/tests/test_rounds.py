from __future__ import annotations

import itertools

from attune_bench.rounds import Rules, interleave


class World:
    """Contestants whose samples take as long as they say; `order` is who was asked, one after the other."""

    def __init__(self):
        self.seconds = 0.0
        self.order = []

    def contestant(self, name, times_us, costs_s=0.001):
        times = itertools.cycle(times_us)

        def take():
            self.order.append(name)
            self.seconds += costs_s
            return next(times)

        return take

    def run(self, contestants, **rules):
        return interleave(contestants, Rules(**rules), lambda: self.seconds, seed=1)


def test_calm_contestants_end_with_the_fewest_samples():
    world = World()
    samples = world.run({name: world.contestant(name, [10.0]) for name in "ab"}, min_samples=7)
    assert {name: len(taken) for name, taken in samples.items()} == {"a": 7, "b": 7}


def test_what_only_heats_does_not_count():
    world = World()
    contestants = {name: world.contestant(name, [10.0], costs_s=0.125) for name in "ab"}
    samples = world.run(contestants, min_samples=7, seconds=100, heat_seconds=1.0)
    assert {name: len(taken) for name, taken in samples.items()} == {"a": 7, "b": 7}
    assert world.order[:8] == ["a", "b"] * 4 and len(world.order) == 8 + 14


def test_each_round_has_everybody_once():
    world = World()
    world.run({name: world.contestant(name, [10.0]) for name in "abc"}, min_samples=7)
    rounds = [world.order[i : i + 3] for i in range(0, len(world.order), 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)


def test_the_order_changes_from_round_to_round():
    world = World()
    world.run({name: world.contestant(name, [10.0]) for name in "abc"}, min_samples=7)
    assert len({tuple(world.order[i : i + 3]) for i in range(0, len(world.order), 3)}) > 1


def test_a_noisy_contestant_keeps_all_in_the_rounds_until_it_is_settled():
    world = World()
    noisy = world.contestant("noisy", [10.0] * 5 + [20.0] * 5)
    samples = world.run({"calm": world.contestant("calm", [10.0]), "noisy": noisy}, max_samples=30, seconds=100)
    assert len(samples["calm"]) == len(samples["noisy"]) == 30


def test_a_slow_contestant_leaves_when_its_share_of_the_time_is_up_and_the_others_go_on():
    world = World()
    contestants = {
        "slow": world.contestant("slow", [1e6, 2e6], costs_s=1.0),
        "noisy": world.contestant("noisy", [10.0] * 5 + [20.0] * 5),
    }
    samples = world.run(contestants, min_samples=7, max_samples=30, seconds=4)
    assert (len(samples["slow"]), len(samples["noisy"])) == (7, 30)


def test_nobody_is_left_with_fewer_than_the_fewest_samples_however_slow():
    world = World()
    samples = world.run({"slow": world.contestant("slow", [1e6, 2e6], costs_s=60.0)}, min_samples=7, seconds=1)
    assert len(samples["slow"]) == 7


def test_without_contestants_there_are_no_samples():
    assert World().run({}) == {}
