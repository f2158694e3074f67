"""What Kernel Tuner is told of a recipe, and what is said of its results."""

import itertools
import pathlib
import re
import sys
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import beside_kernel_tuner
import configurations
import kernel_tuner_report
import nvrtc

PROBLEM = "b7.h12.q197.d64.f16"
PARAMETERS = {
    name: int(value)
    for name, value in re.findall(
        r"(\w+)=(\d+)",
        "BLOCK_M=64,BLOCK_N=64,WARPS_M=4,WARPS_N=1,K_STAGES=2,V_STAGES=1,Q_REGISTERS=0,KV_CONVERT=0,LAZY_RESCALE=1,"
        "WARP_SKIP=0,MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0",
    )
}
LAUNCH_TIME = {"KV_SPLITS", "COMBINE", "PERSISTENT", "LONGEST_FIRST"}


class Variant:
    """Of attune.values, as far as it is used; equal to itself alone."""

    family = "attention_mma"

    def __init__(self, **changes):
        self.parameters = PARAMETERS | changes
        self.text = "attention_mma:" + ",".join(f"{name}={value}" for name, value in self.parameters.items())


def recipe(items, counter=0, threads=128, args=(), **launch):
    """A recipe of which Q, O, LSE, the counter and two numbers are the arguments."""
    kinds = [("Q", 0), ("O", 0), ("LSE", 0), ("SCRATCH", 0), ("I32", items), ("F32", 0.5), *args]
    given = {"entry": "attention_mma", "grid": (items, 1, 1), "block": (threads, 1, 1), "dynamic_shared_bytes": 1024}
    given |= {"cluster": None, "overlaps_previous": False} | launch
    values = [types.SimpleNamespace(kind=kind, value=value) for kind, value in kinds]
    return types.SimpleNamespace(
        scratch=[types.SimpleNamespace(bytes=counter, zero_before_first_run=True)],
        launches=[types.SimpleNamespace(args=values, **given)],
    )


class Tunable:
    """As Kernel Tuner's."""

    def __init__(self, function, options):
        self.function, self.options = function, options

    def of(self, index):
        return self.options[self.function({configurations.VARIANT: index})]


class SpaceTest(unittest.TestCase):
    def space(self, *recipes, **changes):
        variants = [Variant(**changes), Variant(PERSISTENT=2, **changes), Variant(BLOCK_N=32, **changes)]
        return configurations.space(PROBLEM, "attention_mma", dict(zip(variants, recipes, strict=False)))

    def setUp(self):
        self.three = self.space(recipe(84), recipe(264, counter=4, threads=64), recipe(84))

    def test_definitions_are_the_compile_time_parameters_and_what_the_manifest_defines(self):
        functions = configurations.define_functions(self.three)
        defined = [{name: of({"variant": i}) for name, of in functions.items()} for i in range(3)]
        self.assertEqual(defined[0], defined[1], "variants that differ in their launch are one code")
        self.assertEqual([each["BLOCK_N"] for each in defined], [64, 64, 32])
        self.assertEqual((defined[0]["HEAD_DIM"], defined[0]["MASK"]), (64, 0))
        self.assertFalse(LAUNCH_TIME & functions.keys())
        self.assertLessEqual(PARAMETERS.keys() - LAUNCH_TIME, functions.keys())

    def test_the_restriction_leaves_each_variant_once_with_its_block(self):
        params = configurations.tune_params(self.three)
        fits = configurations.restriction(self.three)
        left = [pair for pair in itertools.product(params["variant"], params["block_size_x"]) if fits(*pair)]
        self.assertEqual(left, [(0, 128), (1, 64), (2, 128)])
        self.assertEqual(fits.__code__.co_varnames[:2], tuple(params), "Kernel Tuner passes them in this order")

    def test_arguments_that_vary_depend_on_the_variant_and_others_are_plain(self):
        numbers = {
            "I32": lambda value: ("i32", value),
            "F32": lambda value: ("f32", value),
            "NULL": lambda value: "null",
        }
        q, o, lse, counter, items, factor = configurations.arguments(
            self.three, {"Q": "q", "O": "o"}, numbers, lambda size: f"{size} zeros", Tunable
        )
        self.assertEqual((q, o, lse, factor), ("q", "o", "null", ("f32", 0.5)))
        self.assertEqual([counter.of(i) for i in range(3)], ["null", "4 zeros", "null"])
        self.assertEqual([items.of(i) for i in range(3)], [("i32", 84), ("i32", 264), ("i32", 84)])
        self.assertEqual(configurations.position(self.three, "O"), 1)

    def test_scratch_is_as_large_as_the_variant_with_the_most_needs(self):
        space = self.space(recipe(1, counter=8), recipe(1, counter=16))
        made = configurations.arguments(space, {}, {"I32": int, "F32": float, "NULL": int}, str, Tunable)
        self.assertEqual(made[3], "16")

    def test_the_first_variants_are_a_space_of_their_own(self):
        two = configurations.first(self.three, 2)
        self.assertEqual(configurations.tune_params(two)["variant"], [0, 1])
        self.assertEqual(two, self.space(recipe(84), recipe(264, counter=4, threads=64)))

    def test_what_kernel_tuner_cannot_launch_is_refused(self):
        two = recipe(1)
        two.launches *= 2
        for bad, why in [
            (two, "2 launches"),
            (recipe(1, block=(32, 2, 1)), "block of"),
            (recipe(1, cluster=(2, 1, 1)), "cluster"),
            (recipe(1, args=[("TENSOR_MAP", None)]), "tensor map"),
        ]:
            with self.assertRaisesRegex(ValueError, why):
                self.space(bad)
        with self.assertRaisesRegex(ValueError, "one list of arguments"):
            self.space(recipe(1), recipe(1, args=[("I32", 1)]))

    @unittest.skipUnless(nvrtc.library(), "no NVRTC")
    def test_the_definitions_are_all_that_the_source_wants(self):
        source, folders = pathlib.Path(self.three["source"]), self.three["includes"]
        _, ptx, _ = nvrtc.compiled(source, folders, self.three["defines"][2], "compute_90")
        self.assertIn(f".entry {self.three['entry']}(", ptx)


class TriedTest(unittest.TestCase):
    def test_variants_are_in_one_random_order_whatever_the_order_of_their_trials(self):
        variants = [Variant(BLOCK_N=16 * i) for i in range(1, 9)]
        timing = types.SimpleNamespace(median_us=5.0, given_up=False)

        def client(order):
            trials = {
                f"trials/{order.index(variant)}": types.SimpleNamespace(
                    name=f"trials/{order.index(variant)}",
                    variant=variant,
                    verdict=types.SimpleNamespace(name="OK"),
                    timing=timing,
                    identical_to="",
                    dependencies=types.SimpleNamespace(toolchain="nvrtc 13"),
                    recipe=None if variant is variants[3] else recipe(1),
                )
                for variant in order
            }
            return types.SimpleNamespace(trials=lambda problem, family: list(trials.values()), trial=trials.get)

        found, recipes = beside_kernel_tuner.tried(client(variants), PROBLEM)
        again, _ = beside_kernel_tuner.tried(client(variants[::-1]), PROBLEM)
        self.assertEqual(list(found), list(again))
        self.assertNotEqual(list(found), sorted(found))
        self.assertEqual(found.keys() - {variant.text for variant in recipes}, {variants[3].text})

    def test_problems_that_have_other_buffers_are_refused(self):
        self.assertEqual(beside_kernel_tuner.parsed("b2.h8.q512.d64.f16:48"), ("b2.h8.q512.d64.f16", 48))
        self.assertEqual(beside_kernel_tuner.parsed(PROBLEM), (PROBLEM, 0))
        for text in (
            f"{PROBLEM}:all",
            "b1.h1.q8.d8.f16.lse:1",
            "b1.h1.q1.kv64.d8.f16.page16",
            "b1.h1.q8.d8.f16.kve4m3",
        ):
            with self.assertRaises(ValueError):
                beside_kernel_tuner.parsed(text)


def run_row(variant, time_us=10.0, right=True, error=""):
    parts = {"compile_s": 1.0, "verification_s": 0.25, "benchmark_s": 0.5, "framework_s": 0.25}
    times = {"time_us": time_us, "least_us": time_us and time_us / 2}
    return {"variant": variant, "right": right, "why": "" if right else "off", "error": error, **times, **parts}


def trial(verdict="OK", median_us=10.0):
    return {"verdict": verdict, "median_us": median_us, "given_up": False, "identical_to": "", "toolchain": "nvrtc 13"}


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.trials = {
            "a": trial(),
            "b": trial(median_us=5.0),
            "c": trial("INFEASIBLE", None),
            "d": trial(median_us=20.0),
        }
        rows = [run_row("a", 12.0), run_row("b", 15.0), run_row("c"), run_row("d", 20.0)]
        attune = {"seconds": 2.0, "trials": 4, "trials_per_s": 4.0, "phases": {"trials": 1.0}, "verdicts": {"OK": 4}}
        attune["error"] = None
        run = {"backend": "cupy", "kind": "cold", "seconds": 16.0, "rows": rows}
        problem = {
            "problem": PROBLEM,
            "trials": self.trials,
            "attune": {"cold": attune},
            "kernel_tuner": [run],
            "errors": [],
        }
        self.results = {
            "device": "D",
            "driver": "1",
            "cores": 2,
            "versions": {"Kernel Tuner": "1.5.0", "CuPy": "14"},
            "problems": [problem],
        }
        self.run = run

    def test_rates_are_of_the_whole_operation_and_of_the_trials(self):
        found = self.results["problems"][0]
        self.assertEqual(kernel_tuner_report.rates(found["attune"]["cold"]), (2.0, 4.0))
        self.assertEqual(kernel_tuner_report.other_rates(self.run), (0.25, 0.5))
        row = list(kernel_tuner_report.rate_rows(found))[1]
        self.assertEqual(row[3:9], ["4 of 4", "16.00", "0.25", "0.50", "8.0x", "8.0x"])

    def test_what_was_tried_until_the_time_was_up_is_what_counts(self):
        self.run["rows"] = self.run["rows"][:2]
        row = list(kernel_tuner_report.rate_rows(self.results["problems"][0]))[1]
        self.assertEqual(row[3:6], ["2 of 4", "16.00", "0.12"])

    def test_times_are_compared_where_both_have_one(self):
        of = kernel_tuner_report.agreement(self.trials, self.run["rows"])
        self.assertEqual((of["variants"], of["median"], of["least"]), (3, 1.2, 0.6))
        self.assertEqual(of["chosen"], 2.0, "its fastest is a, the fastest is b")

    def test_without_a_common_time_nothing_is_compared(self):
        self.assertIsNone(kernel_tuner_report.agreement(self.trials, [run_row("c")]))

    def test_a_result_that_one_alone_finds_right_is_a_failure_unless_it_was_not_run(self):
        self.assertEqual(list(kernel_tuner_report.failures(self.results)), [])
        self.run["rows"][0] = run_row("a", right=False)
        self.trials["d"]["verdict"] = "WRONG_RESULT"
        failures = list(kernel_tuner_report.failures(self.results))
        self.assertEqual([line.rpartition(", ")[2] for line in failures], ["Kernel Tuner off", "Kernel Tuner right"])

    def test_trials_that_are_not_the_list_are_a_failure(self):
        self.results["problems"][0]["attune"]["cold"]["trials"] = 3
        self.assertIn("3 trials of a list of 4", " ".join(kernel_tuner_report.failures(self.results)))

    def test_the_document_has_a_row_for_each_run(self):
        text = "\n".join(kernel_tuner_report.markdown(self.results, "H"))
        self.assertIn(f"| {PROBLEM} | Kernel Tuner, cupy | cold | 4 of 4 | 16.00 | 0.25 | 0.50 | 8.0x | 8.0x |", text)
        self.assertIn(f"| {PROBLEM} | cupy, cold | 3 | 0 | 3 | 1.20 |", text)
        self.assertIn("attune with nvrtc 13; Kernel Tuner 1.5.0, CuPy 14.", text)


if __name__ == "__main__":
    unittest.main()
