"""Kubernetes manifests as kustomize puts them together, as far as those of deploy/ use it: resources that are files and
folders, strategic merge patches, ConfigMaps made of files. What it makes is what kubectl makes (kubernetes_test.py)."""

import copy
import pathlib
import unittest

try:
    import yaml
except ImportError as error:
    raise unittest.SkipTest("PyYAML is not installed (python3-yaml)") from error

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEYS = ("name", "mountPath")  # of the lists that a strategic merge joins, as far as the patches use them


def documents(file):
    return list(yaml.safe_load_all(file.read_text()))


def merged(value, patch):
    """What Kubernetes makes of a value by a strategic merge patch."""
    if isinstance(value, dict) and isinstance(patch, dict):
        result = {**value, **{key: merged(value.get(key), part) for key, part in patch.items()}}
        return {key: part for key, part in result.items() if part is not None}
    key = next((key for key in KEYS if all(isinstance(item, dict) and key in item for item in patch or [None])), None)
    if not isinstance(value, list) or key is None:
        return copy.deepcopy(patch)
    if key == "name" and all("mountPath" in item for item in patch):
        key = "mountPath"
    names = [item[key] for item in value]
    changed = {item[key]: item for item in patch}
    joined = [merged(item, changed[item[key]]) if item[key] in changed else item for item in value]
    return joined + [item for item in patch if item[key] not in names]


def _id(manifest):
    return manifest["kind"], manifest["metadata"]["name"], manifest["metadata"].get("namespace")


def _made(generator, folder):
    """A ConfigMap made of files; of a name that stays, as references to it are not followed here."""
    assert generator["options"] == {"disableNameSuffixHash": True}, generator
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": generator["name"], "namespace": generator["namespace"]},
        "data": {name: (folder / name).read_text() for name in generator["files"]},
    }


def assembled(folder):
    (listed,) = documents(folder / "kustomization.yaml")
    unknown = set(listed) - {"apiVersion", "kind", "resources", "patches", "configMapGenerator"}
    assert not unknown, f"kustomization.yaml of {folder} has {unknown}, which are not known here"
    manifests = []
    for name in listed["resources"]:
        path = (folder / name).resolve()
        manifests += assembled(path) if path.is_dir() else documents(path)
    manifests += [_made(generator, folder) for generator in listed.get("configMapGenerator", [])]
    for patch in listed.get("patches", []):
        (change,) = documents(folder / patch["path"])
        (at,) = [i for i, manifest in enumerate(manifests) if _id(manifest) == _id(change)]
        manifests[at] = merged(manifests[at], change)
    return manifests


def of_kind(manifests, kind, name=None):
    (found,) = [m for m in manifests if m["kind"] == kind and name in (None, m["metadata"]["name"])]
    return found
