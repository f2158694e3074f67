"""What a server has and can do: devices, kernel families, preflight."""

from __future__ import annotations

from collections.abc import Sequence

from attune import arguments
from attune.plans.plan import Plan, call
from attune.problem import Problem
from attune.table import Table
from attune.values import Device, Host, KernelFamily, Preflight


def host() -> Plan[Host]:
    """The server's devices, the state of its backends, and its version."""
    return Host.from_message((yield from call("ListDevices")))


def devices() -> Plan[Table[Device]]:
    """The server's devices; the first is the one that an empty `device` means.

    Wherever a device is named, its id, its UUID or its class's alias ("l4": any card of it) will do.
    """
    return Table((yield from host()).devices)


def families() -> Plan[Table[KernelFamily]]:
    """The kernel families that the server knows."""
    return Table(map(KernelFamily.from_message, (yield from call("ListKernelFamilies")).families))


def preflight(
    problem: Problem | str,
    *,
    device: str = "",
    families: Sequence[str] = (),
    variants: bool = False,
    where: Sequence[str] = (),
) -> Plan[Preflight]:
    """What variants of a problem there are to try, and what stands in the way; compiles and runs nothing.

    `device` may be "profile:l4": the limits of a device that is not there. `variants` also lists them all. `where` as
    `tune` has it.
    """
    response = yield from call(
        "Preflight",
        problem=Problem.of(problem).to_message(),
        device_id=device,
        families=arguments.several("families", families, "'attention_mma'"),
        list_variants=variants,
        where=arguments.several("where", where, "'BLOCK_M == 64'"),
    )
    return Preflight.from_message(response)


def ping() -> Plan[None]:
    """Returns when the server answered."""
    yield from call("Ping")
