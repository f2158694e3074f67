"""Jobs for launch.py: a variant's code and recipe, from a daemon that compiles it, checks it and times it first."""

import json


def argument(arg):
    """[kind, value]; of a tensor map the value is its fields, `base` such an argument again or None."""
    if arg.kind != "TENSOR_MAP":
        return [arg.kind, arg.value]
    each = arg.value
    numbers = ("base_offset", "element", "dims", "strides", "box", "swizzle_bytes", "l2_promotion_bytes")
    fields = {name: getattr(each, name) for name in numbers}
    return [arg.kind, {**fields, "base": each.base and argument(each.base)}]


def job(problem, variant, recipe, artifact):
    """What launch.py runs. `recipe` is attune.values.LaunchRecipe, `artifact` the file of its code."""
    return {
        "problem": str(problem),
        "variant": variant,
        "artifact": str(artifact),
        "scratch": [{"bytes": each.bytes, "zero": each.zero_before_first_run} for each in recipe.scratch],
        "launches": [
            {
                "entry": launch.entry,
                "grid": list(launch.grid),
                "block": list(launch.block),
                "dynamic_shared_bytes": launch.dynamic_shared_bytes,
                "args": [argument(arg) for arg in launch.args],
                "cluster": launch.cluster,
                "overlaps_previous": launch.overlaps_previous,
            }
            for launch in recipe.launches
        ],
    }


def evaluated(daemon, client, problem, variant, path):
    """Has the daemon try a variant and writes its job to `path`. The trial; no job when nothing was compiled."""
    trial = client.evaluate(problem, variant).result().trial
    if not trial.artifact_sha256:
        return trial
    recipe = client.trial(trial.name).recipe
    path.write_text(json.dumps(job(problem, variant, recipe, daemon.artifact(trial.artifact_sha256))))
    return trial
