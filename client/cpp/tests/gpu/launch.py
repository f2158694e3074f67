"""Launches from C++ on a GPU: what it computes beside the Python launcher, bit for bit, and what it costs the host.

    python3 client/cpp/tests/gpu/launch.py --bundle bundle --out out

BUNDLE is made by `deploy/bundle build bundle decode_server launch_files`; BUNDLE/site has the Python client; torch and
cuda-bindings are the host's. Tunes a few problems with a small budget on a daemon of its own, then for each of them runs
the same artifact on the same bytes through attune.load and through launch_files, which asks the server, and again with
nothing but a snapshot. Ends with the example decode server. Writes OUT/launch.json and fails when any byte differs, when
an output of the decode server is wrong, or when a launch costs the host more than 3 us.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "tests/gpu"))
import buffers
import daemon

DEVICE = "cuda:0"
MOST_US = 3.0  # of host time, of a recipe of one launch
DECODE = "b4.h32.kvh8.q1.kv1024.d128.bf16.page16"
PROBLEMS = (
    "b1.h1.q128.d64.f16@attention_mma",
    "b2.h8.kvh2.q256.d64.f16.causal@attention_wmma",
    "b2.h4.q200.kv328.d64.bf16.causal-br.lse@attention_mma",
    "b2.h4.q256.d64.f16.bshd@attention_mma",
    "b1.h8.q1.kv4096.d64.f16@attention_mma",
    "b1.h8.q1024.d128.bf16.causal@attention_hopper",
    "b1.h8.q1024.d128.f16.lse@attention_hopper",
    "b2.h4.kvh2.q113.kv203.d64.f16.window37.softcap20.sinks.lse@attention_mma",
    "b5.h4.kvh2.q256.d64.f16.causal.sinks.varlen.lse@attention_mma",
    "b4.h4.kvh2.q5.kv304.d64.f16.causal-br.sinks.bshd.page16.lse@attention_mma",
    "b4.h4.kvh2.q128.kv304.d64.f16.causal-br.varlen.page16.lse@attention_mma",
    "b4.h32.kvh8.q1.kv512.d128.bf16.page16@attention_mma",
    f"{DECODE}@attention_mma",
)
# In the order of Kernel.launch.
ROLES = ("Q", "K", "V", "O", "LSE")
MORE_ROLES = ("SINKS", "Q_BOUNDS", "KV_BOUNDS", "KV_LENGTHS", "PAGE_TABLE", "K_SCALE", "V_SCALE")
WAYS = ("run", "graph", "plan")


def in_python(attune, answer, inputs, outputs):
    """What the Python launcher computes, by role."""
    import torch

    on_gpu = {role: torch.frombuffer(bytearray(data), dtype=torch.uint8).cuda() for role, data in inputs.items()}
    on_gpu |= {role: torch.full((size,), 0xFF, dtype=torch.uint8, device="cuda") for role, size in outputs.items()}
    addresses = {role: tensor.data_ptr() for role, tensor in on_gpu.items()}
    more = tuple(addresses.get(role, 0) for role in MORE_ROLES)
    kernel = attune.load(answer)
    for _ in range(2):
        kernel.launch(*(addresses.get(role, 0) for role in ROLES), torch.cuda.current_stream().cuda_stream, more)
    torch.cuda.synchronize()
    return {role: bytes(on_gpu[role].cpu().numpy()) for role in outputs}


def in_cpp(bundle, work, problem, source):
    """launch_files' report, and what each way computed, by (role, way)."""
    for old in work.glob("out/*.bin"):
        old.unlink()
    command = [bundle / "launch_files", source, f"--problem={problem}", f"--in={work}/in", f"--out={work}/out"]
    result = subprocess.run(command, capture_output=True, text=True, env=daemon.environment(bundle))
    if result.returncode != 0:
        return {"error": result.stderr[-2000:]}, {}
    written = {tuple(path.stem.split(".")): path.read_bytes() for path in work.glob("out/*.bin")}
    return json.loads(result.stdout), written


def compare(attune, client, bundle, work, problem, sources):
    """One problem's part of the report; its "wrong" lists what is."""
    answer = client.best(problem, device=DEVICE, artifact=True)
    inputs, outputs = buffers.make(buffers.Problem(problem))
    for old in work.glob("in/*.bin"):
        old.unlink()
    for role, data in inputs.items():
        (work / "in" / f"{role}.bin").write_bytes(data)
    expected = in_python(attune, answer, inputs, outputs)
    part = {"variant": answer.variant.text, "wrong": []}
    if any(data == b"\xff" * len(data) for data in expected.values()):
        part["wrong"].append("Python wrote nothing")
    for name, source in sources.items():
        report, written = in_cpp(bundle, work, problem, source)
        part[name] = report
        part["wrong"] += [f"{name}: {report['error']}"] if "error" in report else []
        part["wrong"] += [
            f"{name}: {role} by {way} differs from Python's"
            for role in outputs
            for way in WAYS
            if "error" not in report and written.get((role, way)) != expected[role]
        ]
        if report.get("launches") == 1 and report["run"]["median_us"] > MOST_US:
            part["wrong"].append(f"{name}: a launch costs {report['run']['median_us']} us; at most {MOST_US}")
        if "variant" in report and report["variant"] != answer.variant.text:
            part["wrong"].append(f"{name}: launched {report['variant']}")
    return part


def decode(bundle, source):
    command = [bundle / "decode_server", source, f"--problem={DECODE}"]
    result = subprocess.run(command, capture_output=True, text=True, env=daemon.environment(bundle))
    if result.returncode != 0:
        return {"wrong": [result.stderr[-2000:]]}
    return {**json.loads(result.stdout), "wrong": []}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--out", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--trials", type=int, default=12, help="to tune each problem with")
    options = parser.parse_args()
    attune = daemon.import_client(options.bundle)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        for folder in ("in", "out"):
            (work / folder).mkdir()
        with (
            daemon.Daemon(options.bundle, work, [ROOT / "kernels_src"]) as running,
            attune.Client(running.address) as client,
        ):
            for given in PROBLEMS:
                problem, _, family = given.partition("@")
                budget = {"strategy": "random", "max_trials": options.trials, "max_time": 5, "seed": 1}
                client.tune(problem, device=DEVICE, families=[family], **budget).result()
            running.attune("export", str(work / "all.snapshot"))
            sources = {"server": f"--server={running.address}", "snapshot": f"--snapshot={work}/all.snapshot"}
            report = {
                given: compare(attune, client, options.bundle, work, given.partition("@")[0], sources)
                for given in PROBLEMS
            }
            report["decode_server"] = decode(options.bundle, sources["server"])
            report["decode_server, snapshot"] = decode(options.bundle, sources["snapshot"])
    (options.out / "launch.json").write_text(json.dumps(report, indent=1) + "\n")
    wrong = [f"{name}: {what}" for name, part in report.items() for what in part["wrong"]]
    print("\n".join(wrong) or f"{len(PROBLEMS)} problems: C++ and Python agree bit for bit")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
