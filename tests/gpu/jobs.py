"""Jobs for launch.py: a variant's code and recipe, from a daemon that compiles it, checks it and times it first."""

import json


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
                "args": [[arg.kind, arg.value] for arg in launch.args],
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
