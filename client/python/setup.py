"""Compiles the public API's .proto files into attune/api.binpb, the descriptor set that is read at run time.

They are in a checkout; a source distribution has what was made of them.
"""

from __future__ import annotations

import importlib.resources
import pathlib
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
MADE = HERE / "attune/api.binpb"


def compile_api(target: pathlib.Path) -> None:
    """Writes proto/attune/v1 and google/rpc, with all they import, to `target` as one FileDescriptorSet."""
    if (HERE / "PKG-INFO").is_file():
        if target != MADE:
            shutil.copyfile(MADE, target)
        return
    from grpc_tools import protoc

    files = [*sorted(PROTO.glob("attune/v1/*.proto")), PROTO / "google/rpc/rpc.proto"]
    if not all(file.is_file() for file in files) or len(files) < 2:
        raise SystemExit(
            f"attune: no .proto files in '{PROTO}'; build from client/python of a whole checkout of the repository, "
            "or from a source distribution"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    well_known = importlib.resources.files("grpc_tools") / "_proto"
    code = protoc.main(
        ["protoc", f"-I{PROTO}", f"-I{well_known}", f"--descriptor_set_out={target}", "--include_imports"]
        + [str(file) for file in files]
    )
    if code != 0:
        raise SystemExit(f"attune: protoc ended with {code}; its errors stand above")


class BuildWithApi(build_py):
    """Beside the built modules; an editable installation reads it from the source tree."""

    def run(self) -> None:
        super().run()
        compile_api(pathlib.Path(self._folder(), "api.binpb"))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), str(pathlib.Path(self.build_lib, "attune", "api.binpb"))]

    def _folder(self) -> pathlib.Path:
        return HERE / "attune" if self.editable_mode else pathlib.Path(self.build_lib, "attune")


class SdistWithApi(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        target = pathlib.Path(base_dir, "attune", "api.binpb")
        target.unlink(missing_ok=True)  # a link to what an editable installation left in the checkout
        compile_api(target)


setup(cmdclass={"build_py": BuildWithApi, "sdist": SdistWithApi})
