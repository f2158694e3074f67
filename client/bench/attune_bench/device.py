"""The device that the bench runs on: its facts, and its state while a row is timed (through NVML where pynvml is)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from attune_bench.flash4 import installed_version

# NVML's nvmlClocksEventReason bits that slow a kernel down; idle and application settings are not among them.
_THROTTLES = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What does not change during a run."""

    name: str
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    capability: tuple[int, int]
    driver: str
    libraries: dict[str, str]


@dataclass(frozen=True, slots=True)
class State:
    """At one moment."""

    sm_clock_mhz: int = 0
    power_w: float = 0.0
    throttle: str = ""


class Device:
    """CUDA device `index`, made current."""

    def __init__(self, index: int) -> None:
        torch.cuda.set_device(index)
        self._nvml, self._handle = _nvml(torch.cuda.get_device_properties(index))

    def facts(self) -> Facts:
        """Of the device and the libraries that drive it."""
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        libraries = {
            "PyTorch": torch.__version__,
            "CUDA": str(torch.version.cuda),
            "cuDNN": str(torch.backends.cudnn.version()),
        }
        try:
            import triton

            libraries["Triton"] = triton.__version__
        except ImportError:
            pass
        if version := installed_version():
            libraries["FlashAttention 4"] = version
        return Facts(
            name=properties.name,
            sm_count=properties.multi_processor_count,
            l2_bytes=properties.L2_cache_size,
            memory_bytes=properties.total_memory,
            capability=(properties.major, properties.minor),
            driver=self._nvml.nvmlSystemGetDriverVersion() if self._nvml else "unknown without pynvml",
            libraries=libraries,
        )

    def state(self) -> State:
        """Now; zeros without NVML, or where it does not answer."""
        if self._nvml is None:
            return State()
        nvml, handle = self._nvml, self._handle
        try:
            reasons = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
            return State(
                sm_clock_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
                power_w=nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
                throttle=", ".join(word for bit, word in _THROTTLES.items() if reasons & bit),
            )
        except nvml.NVMLError:
            return State()


def _nvml(properties) -> tuple:
    """NVML and its handle of the device; (None, None) where there is none."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{properties.uuid}")
    except Exception:
        return None, None
