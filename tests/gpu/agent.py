#!/usr/bin/env python3
"""A scripted agent over MCP on a GPU host: python3 tests/gpu/agent.py --bundle BUNDLE --out OUT

The official SDK's client (pip install mcp) starts attune-mcp as an editor does, with an author's token, against a
daemon from a bundle (deploy/bundle); about three minutes. At each of two problems that nobody has tuned the agent
looks, submits the plain starter kernel, then parallelism, tensor cores and asynchronous copies (attune new-kernel
--step), then what the counters ask for: at most eight submissions, each profiled and explained. Writes OUT/agent.json,
OUT/agent.md, and OUT/LOOP.md with every diff; ends with 1 where the last kernel that was kept is not five times as fast
as the first.
"""

import argparse
import asyncio
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import agent_report
from daemon import ROOT, Daemon, import_client
from submit import Author

PROBLEMS = ("b1.h1.q128.d64.f16", "b2.h8.q512.d64.f16")
MOST_SUBMISSIONS = 8
SPEEDUP = 5

STEPS = (
    "the starter as it comes, to have a base",
    "parallelism: a CTA a row and its keys over groups of 8 lanes, so that a warp is at four keys at once",
    "tensor cores: products by mma, and each key that is read serves 16 rows",
    "asynchronous copies: the next tile of K and V arrives while this one is computed",
)
# Parameter, its new values, what it is expected to do.
WARPS = ("WARPS", [4, 8, 16], "more warps share the keys of a tile of rows")
KEYS = ("KEYS", [16, 32, 64], "tiles of fewer keys, for more warps with work, or of more, for fewer turns")
ROWS = ("ROWS", [16, 32], "32 rows for each tile of keys: half as much of K and V is read")


def changes(bound):
    """What to try once the techniques are there, by what bounds the kernel."""
    return (WARPS, KEYS, ROWS) if "too few CTAs" in bound else (ROWS, KEYS, WARPS)


def with_values(manifest, name, values):
    """The manifest with other values of a parameter; its guess stays."""
    pattern = rf'(name: "{name}"[^}}]*values: )\[[^\]]*\]'
    changed, count = re.subn(pattern, rf"\g<1>{values}", manifest)
    if count != 1:
        sys.exit(f"the manifest has {count} parameters {name}")
    return changed


class Tools:
    """The server's tools. An error is an answer, too: {"error": its words}."""

    def __init__(self, session):
        self.session = session
        self.calls = []

    async def __call__(self, tool, **arguments):
        begin = time.monotonic()
        result = await self.session.call_tool(tool, arguments)
        answer = result.structured_content
        if result.is_error:
            answer = {"error": " ".join(part.text for part in result.content if hasattr(part, "text"))}
        self.calls.append({"tool": tool, "seconds": round(time.monotonic() - begin, 3), "error": answer.get("error")})
        return answer


class Loop:
    """The agent's work on one problem."""

    def __init__(self, tools, author, directory, problem):
        self.tools, self.author, self.directory, self.problem = tools, author, directory / problem, problem
        self.name = f"agent-{problem}"
        self.iterations = []
        self.kept = None  # the folder of the last that was kept
        self.bound = ""  # and what bounds it

    async def run(self):
        before = {tool: await self.tools(tool, problem=self.problem) for tool in ("preflight", "best", "explain")}
        for number, technique in enumerate(STEPS, 1):
            await self.submit(self.step(number), technique)
        for name, values, expected in changes(self.bound):
            if self.kept and len(self.iterations) < MOST_SUBMISSIONS:
                await self.submit(self.changed(name, values), f"{name} {values}: {expected}")
        listed = await self.tools("iterations", loop=self.name)
        return {
            "problem": self.problem,
            "loop": self.name,
            "before": before,
            "steps": self.iterations,
            "iterations": listed.get("iterations", []),
        }

    def step(self, number):
        """The starter kernel at a step."""
        folder = self.directory / f"step{number}"
        made = self.author.run("new-kernel", str(folder), "--backend", "cuda", "--step", str(number))
        if made.returncode:
            sys.exit(f"new-kernel: {made.stderr}")
        return folder

    def changed(self, name, values):
        """The last kernel that was kept, with other values of a parameter."""
        folder = self.directory / f"{name.lower()}{len(self.iterations) + 1}"
        shutil.copytree(self.kept, folder)
        manifest = folder / "family.textproto"
        manifest.write_text(with_values(manifest.read_text(), name, values))
        return folder

    async def submit(self, folder, expected):
        """One change, one verdict; then its counters, and what they say."""
        hypothesis = f"{expected}; so far {self.bound}" if self.bound else expected
        begin = time.monotonic()
        verdict = await self.tools(
            "submit",
            kernel=str(folder),
            problems=[self.problem],
            hypothesis=hypothesis,
            loop=self.name,
            base="previous",
        )
        step = {"hypothesis": hypothesis, "seconds": round(time.monotonic() - begin, 2), "verdict": verdict}
        self.iterations.append(step)
        trial = agent_report.row_of(step).get("trial") or {}
        if trial.get("verdict") == "OK":
            step["profile"] = await self.tools("profile", subject=verdict["submission"])
            step["explain"] = await self.tools("explain", problem=trial["trial"])
        if verdict.get("decision") == "KEEP":
            self.kept = folder
            self.bound = step.get("profile", {}).get("bound", "")
        print(
            f"{self.problem} {len(self.iterations)}: {verdict.get('decision')}, {verdict.get('reason', verdict)}",
            flush=True,
        )


async def work(server, author, directory, problems):
    """What became of each problem, the server's tools, and the devices that it has."""
    import mcp

    async with mcp.Client(server) as session:
        tools = Tools(session)
        listed = [tool.name for tool in (await session.list_tools()).tools]
        devices = await tools("devices")
        loops = [await Loop(tools, author, directory, problem).run() for problem in problems]
        return {"tools": listed, "devices": devices.get("devices", []), "loops": loops, "calls": tools.calls}


def server_parameters(bundle, login):
    """attune-mcp as an editor starts it. `login`: of the command line, but for --format."""
    import mcp

    path = os.pathsep.join([str(bundle / "site"), str(ROOT / "client/python"), os.environ.get("PYTHONPATH", "")])
    arguments = ["-m", "attune.mcp", *login[:-1]]
    return mcp.StdioServerParameters(
        command=sys.executable, args=arguments, env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--problem", action="append", help=f"in place of {' and '.join(PROBLEMS)}")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    bundle = arguments.bundle.resolve()
    import_client(bundle)
    with tempfile.TemporaryDirectory(prefix="attune-agent-") as name:
        directory = pathlib.Path(name)
        listen = f"--listen=unix:{directory}/attuned.sock,127.0.0.1:0"
        with Daemon(bundle, directory, [ROOT / "kernels_src"], [listen]) as daemon:
            author = Author(daemon, directory / "attuned.log", directory)
            server = server_parameters(bundle, author.login)
            found = asyncio.run(work(server, author, directory, arguments.problem or PROBLEMS))
            summaries = {}
            for loop in found["loops"]:
                file = arguments.out / f"{loop['loop']}.md"
                made = author.run(*author.login, "summary", "--loop", loop["loop"], "--markdown", str(file))
                if made.returncode:
                    sys.exit(f"summary: {made.stderr}")
                loop["summary"] = [json.loads(line) for line in made.stdout.splitlines()]
                summaries[loop["loop"]] = file.read_text()
    found["failed"] = agent_report.failures(found["loops"], SPEEDUP, MOST_SUBMISSIONS)
    (arguments.out / "agent.json").write_text(json.dumps(found, indent=1) + "\n")
    (arguments.out / "agent.md").write_text(agent_report.markdown(found, summaries))
    for what in found["failed"]:
        print("FAILED", what)
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
