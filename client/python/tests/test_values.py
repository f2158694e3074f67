"""Values made from messages."""

from __future__ import annotations

import dataclasses
import pickle
from datetime import datetime, timedelta, timezone

import pytest
from fake import answer, message, problem, trial

from attune import InvalidArgument, api, values
from attune.values.convert import Value

ENUMS = {
    values.Provenance: "Provenance",
    values.Policy: "Policy",
    values.Verdict: "Verdict",
    values.Backend: "Backend",
    values.Effort: "Strategy.Effort",
    values.Strategy: "Strategy.Kind",
    values.State: "Operation.State",
    values.Phase: "OperationProgress.Phase",
    values.Decision: "EvaluateResult.Decision",
    values.Bound: "ExplainResponse.Bound",
    values.Outcome: "SweepReport.Outcome",
    values.TrendState: "Trend.State",
    values.Comparison: "CompareTimesResponse.Comparison",
    values.SubmitDecision: "SubmitResult.Decision",
    values.SubmissionState: "Submission.State",
    values.Gate: "GateFinding.Gate",
    values.SanitizerTool: "SanitizerTool",
}
MESSAGES = {
    values.Answer: "GetBestResponse",
    values.Explanation: "ExplainResponse",
    values.Finding: "ExplainResponse.Finding",
    values.Progress: "OperationProgress",
    values.SweepRow: "SweepReport.Row",
    values.SweepPlan: "PlanSweepResponse",
    values.PlannedProblem: "PlanSweepResponse.Row",
    values.RetriedTrials: "RetryTrialsResponse",
    values.Host: "ListDevicesResponse",
    values.Parameter: "KernelFamily.Parameter",
    values.Constraint: "KernelFamily.Constraint",
    values.Preflight: "PreflightResponse",
    values.FamilyPreflight: "PreflightResponse.Family",
    values.StrideTerm: "TensorMap.Term",
    values.SubmitRow: "SubmitResult.Row",
    values.ComparedRow: "CompareTimesResponse.Row",
    values.ComparedTimes: "CompareTimesResponse",
}
# A message's fields that its value leaves out: an operation has one `response`, and a problem, where there is one, its
# text.
REDUNDANT = {
    values.Operation: {"tune", "sweep", "evaluate", "submit", "profile", "sanitize"},
    values.Blob: {"data"},
}
# Words of the language.
RENAMED = {"from": "before"}
VALUES = [value for value in vars(values).values() if isinstance(value, type) and issubclass(value, Value)]


@pytest.mark.parametrize("kind", ENUMS, ids=lambda kind: kind.__name__)
def test_an_enum_has_the_apis_values(kind):
    assert {member.name: member.value for member in kind} == api.enum_numbers(ENUMS[kind])


@pytest.mark.parametrize(
    "kind", [kind for kind in VALUES if kind is not values.KernelArg], ids=lambda kind: kind.__name__
)
def test_a_value_has_the_fields_of_its_message(kind):
    descriptor = api.message(MESSAGES.get(kind, kind.__name__)).DESCRIPTOR
    known = {field.name for field in dataclasses.fields(kind)} - {"response"}
    fields = {RENAMED.get(name, name) for name in descriptor.fields_by_name}
    fields -= REDUNDANT.get(kind, set())
    assert known == (fields - {"problem_text"} if "problem" in fields else fields)


def test_a_value_that_only_a_later_version_knows_reads_as_unspecified():
    assert values.Verdict(99) is values.Verdict.UNSPECIFIED


@pytest.mark.parametrize(
    ("text", "member"), [("cold", "COLD"), ("COLD", "COLD"), ("l2-warm", "L2_WARM"), ("L2_WARM", "L2_WARM")]
)
def test_a_word_names_a_member(text, member):
    assert values.Policy.of(text) is values.Policy[member]


def test_a_word_that_is_none_lists_what_is_allowed():
    with pytest.raises(InvalidArgument, match="policy is 'warm'; it must be one of HOT, COLD, L2_WARM"):
        values.Policy.of("warm")


def test_unset_messages_are_none():
    best = values.Answer.from_message(message("GetBestResponse", problem=problem()))
    assert (best.timing, best.geometry, best.accuracy, best.artifact, best.promote_time) == (None,) * 5


def test_times_are_aware():
    read = values.Trial.from_message(trial(finish_time={"seconds": 1_795_000_000}))
    assert read.finish_time == datetime(2026, 11, 18, 11, 6, 40, tzinfo=timezone.utc)


def test_durations_are_timedeltas():
    read = values.Progress.from_message(message("OperationProgress", eta={"seconds": 2, "nanos": 500_000_000}))
    assert read.eta == timedelta(seconds=2.5)


def test_a_variant_without_text_is_given_one():
    parameters = [{"name": "BLOCK_M", "value": 64}, {"name": "WARPS", "value": 4}]
    variant = values.Variant.from_message(message("Variant", family="attention_simt", parameters=parameters))
    assert str(variant) == "attention_simt:BLOCK_M=64,WARPS=4"


def test_variants_can_be_kept_in_sets():
    assert len({values.Answer.from_message(answer()).variant, values.Answer.from_message(answer()).variant}) == 1


def test_a_recipe_keeps_its_launches_and_arguments():
    arguments = [
        {"buffer": {"role": 1}},
        {"buffer": {"role": 5}},
        {"buffer": {"role": 6, "scratch": 1}},
        {"i32": -7},
        {"i64": 1 << 40},
        {"f32": 0.125},
    ]
    launch = {"entry": "attention", "grid": {"x": 4, "y": 2, "z": 1}, "block": {"x": 128, "y": 1, "z": 1}}
    scratch = [{"name": "lse", "bytes": 64}, {"name": "counter", "bytes": 4, "zero_before_first_run": True}]
    launches = [{**launch, "dynamic_shared_bytes": 1024, "args": arguments}]
    recipe = values.LaunchRecipe.from_message(message("LaunchRecipe", scratch=scratch, launches=launches))
    assert recipe.scratch[1] == values.ScratchBuffer("counter", 4, True)
    assert recipe.launches[0].grid == (4, 2, 1)
    assert recipe.launches[0].block == (128, 1, 1)
    assert [(argument.kind, argument.value) for argument in recipe.launches[0].args] == [
        ("Q", 0),
        ("LSE", 0),
        ("SCRATCH", 1),
        ("I32", -7),
        ("I64", 1 << 40),
        ("F32", 0.125),
    ]


def test_an_argument_says_which_stride_it_is():
    found = values.KernelArg.from_message(message("KernelArg", i64=64, stride={"role": 4, "dimension": 3}))
    assert found == values.KernelArg("I64", 64, values.Stride("O", "ROW"))
    assert values.KernelArg.from_message(message("KernelArg", i64=64)).stride is None


def test_a_recipe_keeps_its_tensor_maps_clusters_and_overlaps():
    tensor_map = {
        "base": {"role": 2},
        "base_offset": -2048,
        "element": 3,
        "dims": [128, 1000, 4],
        "strides": [256, 256000],
        "box": [64, 128, 1],
        "swizzle_bytes": 128,
        "l2_promotion_bytes": 256,
        "terms": [{"index": 1, "stride": {"role": 2, "dimension": 2}, "factor": 2, "offset": 16}],
    }
    launches = [
        {"entry": "attention", "args": [{"tensor_map": tensor_map}, {"tensor_map": {}}]},
        {"entry": "combine", "cluster": {"x": 4, "y": 2, "z": 1}, "overlaps_previous": True},
    ]
    main, combine = values.LaunchRecipe.from_message(message("LaunchRecipe", launches=launches)).launches
    assert main.args[0].kind == "TENSOR_MAP"
    assert main.args[0].value == values.TensorMap(
        values.KernelArg("K"),
        -2048,
        "BF16",
        (128, 1000, 4),
        (256, 256000),
        (64, 128, 1),
        128,
        256,
        (values.StrideTerm(1, values.Stride("K", "HEAD"), 2, 16),),
    )
    assert main.args[1].value.base is None
    assert (main.cluster, main.overlaps_previous) == (None, False)
    assert (combine.cluster, combine.overlaps_previous) == ((4, 2, 1), True)


def test_a_value_survives_pickling():
    best = values.Answer.from_message(answer(artifact=b"cubin"))
    assert pickle.loads(pickle.dumps(best)) == best


def test_an_artifact_stays_out_of_the_words():
    assert "cubin" not in repr(values.Answer.from_message(answer(artifact=b"cubin")))
