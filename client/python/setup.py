"""Compiles the public API's .proto files into attune/api.binpb, the descriptor set that is read at run time."""

from __future__ import annotations

import importlib.resources
import pathlib

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"


def compile_api(target: pathlib.Path) -> None:
    """Writes proto/attune/v1 and google/rpc, with all they import, to `target` as one FileDescriptorSet."""
    from grpc_tools import protoc

    files = [*sorted(PROTO.glob("attune/v1/*.proto")), PROTO / "google/rpc/rpc.proto"]
    if not all(file.is_file() for file in files) or len(files) < 2:
        raise SystemExit(
            f"attune: no .proto files in '{PROTO}'; build from client/python of a whole checkout of the repository"
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


setup(cmdclass={"build_py": BuildWithApi})
