"""A roofline prior for the family attention_mma: about how fast a variant can be on a device, from the problem, the
parameters and the device's rates alone. It ranks variants that nobody has timed.

The SM with most work items needs for each of them the largest of: tensor cores, reads of shared memory, exponentials,
reads of K and V from L2, latency of its steps one behind the other. The others overlap with it the better, the more
warps there are. The device needs at least the time to move the problem's bytes.
"""

import dataclasses
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gpu"))
import buffers

STEP_CYCLES = 600  # Q K^T, softmax and P V of one tile, each waiting for the one before: latency alone
ADDRESS_REGISTERS = 72  # beside O, S and Q: what ptxas takes in the middle
JOIN_CYCLES = 2000  # of splits: partial results to L2, a ticket, and back


@dataclasses.dataclass(frozen=True)
class Device:
    """Rates a clock and SM, with fp16 products accumulated in fp32."""

    sms: int
    clock_hz: float
    memory_bytes_s: float
    shared_per_sm: int
    registers_per_sm: int = 65536
    tensor_flops: int = 1024
    shared_bytes: int = 128
    exponentials: int = 16
    l2_bytes: int = 32


# NVIDIA L4 data sheet (121 TFLOP/s dense fp16, 300 GB/s); CUDA C++ Programming Guide, throughput of arithmetic
# instructions, compute capability 8.9.
L4 = Device(sms=58, clock_hz=2.04e9, memory_bytes_s=300e9, shared_per_sm=100 * 1024)


class Problem(buffers.Problem):
    """With what the prior needs besides sizes: no mask, or causal where both alignments are the same."""

    def __init__(self, text):
        super().__init__(text)
        words = text.split(".")
        self.causal = "causal" in words
        unknown = [word for word in words if word.startswith(("causal-br", "window", "varlen", "page", "kve"))]
        if self.causal and self.seq_q != self.seq_kv:
            unknown.append("causal with other lengths of keys")
        if unknown:
            raise ValueError(
                f"problem '{text}' has {unknown[0]}; the prior knows dense problems, unmasked or causal with q = kv"
            )

    def visible_keys(self):
        """Mean over the query rows."""
        return (self.seq_kv + 1) / 2 if self.causal else self.seq_kv

    def least_bytes(self):
        rows_q, rows_kv = self.batch * self.heads_q * self.seq_q, self.batch * self.heads_kv * self.seq_kv
        return 4 * (rows_q + rows_kv) * self.head_dim + (4 * rows_q if self.lse else 0)


@dataclasses.dataclass(frozen=True)
class Estimate:
    seconds: float
    by: str  # what most of it is
    sm_seconds: float  # without the bytes from memory


def estimate(problem, parameters, ctas, shared_bytes, device=L4):
    """`ctas` work items or persistent CTAs and `shared_bytes` a CTA, as the daemon's recipe has them."""
    rows, keys_a_step = parameters["BLOCK_M"], parameters["BLOCK_N"]
    warps_m, teams, splits = parameters["WARPS_M"], parameters["WARPS_N"], parameters["KV_SPLITS"]
    warps = warps_m * teams
    dim = -(-problem.head_dim // 16) * 16
    pack = problem.heads_q // problem.heads_kv if parameters["PACK_GQA"] else 1
    items = problem.batch * problem.heads_q // pack * math.ceil(problem.seq_q * pack / rows) * splits
    steps = math.ceil(problem.visible_keys() / splits / keys_a_step + (0.5 if problem.causal else 0))
    keys = steps * keys_a_step

    row_blocks = rows // 16 // warps_m
    q_registers = dim // 4 if parameters["Q_REGISTERS"] else 0
    registers = row_blocks * (dim // 2 + keys_a_step // teams // 2 + q_registers) + ADDRESS_REGISTERS
    registers = min(registers, device.registers_per_sm // (parameters["MIN_CTAS"] * warps * 32), 255)
    resident = max(
        1, min(device.shared_per_sm // (shared_bytes + 1152), device.registers_per_sm // (warps * 32 * registers))
    )
    busiest = math.ceil(items / device.sms)  # items of the SM with most of them
    at_once = min(resident, math.ceil(ctas / device.sms), busiest)
    cycles = {
        "tensor cores": 4 * rows * keys * dim / device.tensor_flops / min(1, at_once * warps / 4),
        "shared memory": (4 * keys * dim * (warps_m + 1) + (0 if q_registers else 2 * rows * dim * steps * teams))
        / device.shared_bytes,
        "exponentials": rows * keys / device.exponentials,
        "L2": (4 * keys * dim + (8 * rows * dim if splits > 1 else 0)) / device.l2_bytes,
        "latency": steps * STEP_CYCLES / at_once,
    }
    by = max(cycles, key=cycles.get)
    others = sum(cycles.values()) - cycles[by]
    a_item = cycles[by] + others * min(1, 2 / (at_once * warps))
    sm_seconds = (busiest * a_item + (JOIN_CYCLES if splits > 1 else 0)) / device.clock_hz
    memory_seconds = problem.least_bytes() / device.memory_bytes_s
    return Estimate(max(sm_seconds, memory_seconds), "memory" if memory_seconds > sm_seconds else by, sm_seconds)


def order(candidates):
    """(parameters, Estimate) pairs, most promising first. Estimates within 2 % are equal; of equals comes first what
    leaves the SMs more room, and then what hides latency better: lazy rescaling, more buffers."""

    def key(candidate):
        parameters, estimate = candidate
        return (
            round(math.log(estimate.seconds, 1.02)),
            round(math.log(estimate.sm_seconds, 1.02)),
            -parameters["LAZY_RESCALE"],
            -(parameters["K_STAGES"] + parameters["V_STAGES"]),
        )

    return sorted(candidates, key=key)
