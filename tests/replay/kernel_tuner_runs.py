"""Kernel Tuner's strategies in simulation mode on cache files of `attune-replay export`; needs kernel_tuner 1.5."""

import contextlib
import io
import json
import math
import os
import pathlib
import random
import signal
import warnings

# All of 1.5.0. Left out: brute_force, which is no search, and nsga2 and nsga3, which are for several objectives.
STRATEGIES = [
    "random_sample",
    "minimize",
    "basinhopping",
    "diff_evo",
    "genetic_algorithm",
    "greedy_mls",
    "ordered_greedy_mls",
    "greedy_ils",
    "dual_annealing",
    "mls",
    "pso",
    "simulated_annealing",
    "skopt",
    "firefly_algorithm",
    "bayes_opt",
    "pyatf_strategies",
    "hybrid_vndx",
    "adaptive_tabu_greywolf",
]


class Unable(Exception):
    """A strategy that cannot run here, and why."""


class Projections:
    """Whether values of some of the parameters are those of any of the configurations."""

    def __init__(self, configurations):
        self.configurations = configurations
        self.seen = {}

    def allow(self, places, values):
        """`places`: the parameters' places in a configuration; as many values."""
        if places not in self.seen:
            self.seen[places] = {tuple(each[place] for place in places) for each in self.configurations}
        return tuple(values) in self.seen[places]


def trials_of(budget, variants):
    """How many trials a share of the space is."""
    return max(1, math.ceil(budget * variants))


def improvements(visited, times):
    """[[trial, us]] of those that were faster than all before; `times` has None for what failed."""
    best, found = None, []
    for trial, key in enumerate(visited, 1):
        us = times[key]
        if us is not None and (best is None or us < best):
            best = us
            found.append([trial, us])
    return found


class Space:
    """A cache file, and what every strategy is told of it: the same feasible variants."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        cache = json.loads(self.path.read_text())
        self.problem = cache["problem"]
        self.device = cache["device_name"]
        self.kernel = cache["kernel_name"]
        self.problem_size = tuple(cache["problem_size"])
        self.tune_params = cache["tune_params"]
        self.names = cache["tune_params_keys"]
        self.times = {
            key: None if "__error__" in entry else entry["time"] * 1000 for key, entry in cache["cache"].items()
        }
        self.feasible = {tuple(entry[name] for name in self.names) for entry in cache["cache"].values()}

    def restriction(self):
        """The recorded variants and no others, as a constraint that a solver can check before it has all values."""
        import constraint

        projections = Projections(self.feasible)
        place = {name: i for i, name in enumerate(self.names)}
        everywhere = tuple(range(len(self.names)))

        class Recorded(constraint.FunctionConstraint):
            def __call__(self, variables, domains, assignments, forwardcheck=False, *unused):
                assigned = sorted((place[name], value) for name, value in assignments.items())
                return projections.allow(tuple(i for i, _ in assigned), [value for _, value in assigned])

            def __deepcopy__(self, memo):
                return self

        return Recorded(lambda *values: projections.allow(everywhere, values))


def visited_by(space, strategy, seed, most):
    """The keys of the variants that a strategy asks for, each once, in order, and at most so many."""
    import kernel_tuner
    import numpy
    from kernel_tuner.runners import simulation

    visited = {}

    class Watched(simulation.SimulationRunner):
        def run(self, parameter_space, tuning_options):
            asked = [list(each) for each in parameter_space]
            results = super().run(asked, tuning_options)
            for each, result in zip(asked, results, strict=True):
                key = ",".join(str(value) for value in each)
                if result is not None and key in space.times:
                    visited.setdefault(key)
            return results

    random.seed(seed)
    numpy.random.seed(seed)
    original = simulation.SimulationRunner
    simulation.SimulationRunner = Watched
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel_tuner.tune_kernel(
                space.kernel,
                "",
                space.problem_size,
                [],
                space.tune_params,
                restrictions=[space.restriction()],
                strategy=strategy,
                strategy_options={"max_fevals": most},
                cache=str(space.path),
                simulation_mode=True,
                seed=seed,
                quiet=True,
            )
    finally:
        simulation.SimulationRunner = original
    return list(visited)[:most]


@contextlib.contextmanager
def within(seconds):
    """TimeoutError after so much time on the CPU: some strategies stop only when they have found something new."""

    def stop(signum, frame):
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run_of(space, strategy, budget, seed, most_s):
    """A line of kernel_tuner.jsonl. Unable where the strategy fails or does not end."""
    most = trials_of(budget, len(space.times))
    try:
        with within(most_s):
            visited = visited_by(space, strategy, seed, most)
    except Exception as error:  # whatever a strategy fails with is what is to be said of it
        text = str(error).strip().split("\n")[0][:200]
        raise Unable(f"{type(error).__name__}: {text}") from error
    return {
        "device": space.device,
        "problem": space.problem,
        "strategy": strategy,
        "budget": budget,
        "seed": seed,
        "trials": len(visited),
        "improvements": improvements(visited, space.times),
    }


def one_core():
    """Linear algebra on one core, as the other strategies; before numpy is imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
