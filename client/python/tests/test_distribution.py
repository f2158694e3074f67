"""What is built of the package: a source distribution that needs no checkout, and one wheel for every platform."""

from __future__ import annotations

import importlib.metadata
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from fake import message

PACKAGE = pathlib.Path(__file__).resolve().parents[1]


def build(what, package, target):
    """Builds the wheel or sdist of a folder, with the tools that are installed here; the file."""
    target.mkdir()
    code = f"from setuptools import build_meta; print(build_meta.build_{what}({str(target)!r}))"
    said = subprocess.run([sys.executable, "-c", code], cwd=package, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    return target / said.stdout.splitlines()[-1]


def contents(wheel):
    """Name and bytes of each module in a wheel; its metadata has dates."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.startswith("attune/")}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist of a copy of the checkout, the wheel of that copy, and the wheel of the sdist alone."""
    root = tmp_path_factory.mktemp("checkout")
    leave = shutil.ignore_patterns("tests", "__pycache__", "api.binpb", "build", "*.egg-info")
    shutil.copytree(PACKAGE, root / "client/python", ignore=leave)
    shutil.copytree(PACKAGE.parents[1] / "proto", root / "proto")
    sdist = build("sdist", root / "client/python", root / "sdist")
    wheel = build("wheel", root / "client/python", root / "wheel")
    alone = tmp_path_factory.mktemp("alone")
    with tarfile.open(sdist) as archive:
        archive.extractall(alone)
    (unpacked,) = alone.iterdir()
    return sdist, wheel, build("wheel", unpacked, alone / "wheel")


def test_a_source_distribution_has_the_api_and_the_license(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        assert all(member.isreg() or member.isdir() for member in archive.getmembers())
    assert {"attune/api.binpb", "LICENSE", "README.md", "setup.py", "pyproject.toml", "attune/py.typed"} <= names


def test_it_builds_the_wheel_of_the_checkout_without_the_checkout(built):
    _, wheel, of_sdist = built
    assert contents(of_sdist) == contents(wheel)
    assert "attune/api.binpb" in contents(wheel)
    assert "attune/__main__.py" in contents(wheel)


def test_one_wheel_is_for_every_platform(built):
    assert built[1].name.startswith("attune_attention-")
    assert built[1].name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(built[1]) as archive:
        assert [name for name in archive.namelist() if name.endswith("/LICENSE")]


def version_of(server):
    return subprocess.run(
        [sys.executable, "-m", "attune", "--version", "--server", server],
        capture_output=True,
        text=True,
        check=True,
    )


def test_it_says_its_version_and_the_servers(server):
    server.responses["ListDevices"] = message("ListDevicesResponse", server_version="7.8.9")
    lines = version_of(server.address).stdout.splitlines()
    assert lines == [
        f"attune-attention {importlib.metadata.version('attune-attention')}",
        f"attuned 7.8.9 at {server.address}",
    ]


def test_it_says_its_version_without_a_server(tmp_path):
    said = version_of(f"unix:{tmp_path}/nobody")
    assert len(said.stdout.splitlines()) == 1
    assert said.stderr.startswith("attuned: ")
