"""Memory for what a step computes."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from catalog.errors import JobFailed

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def step_bytes(model: Any, batch_size: int) -> int:
    """The least memory of a step on so many examples [bytes]: results of layers, and gradients.

    The results of layers are kept for the gradients. Measured, an example takes the small U-Net
    34.7 MB where this says 29.4 (152x240, 38 classes).
    """
    examples = sum(_bytes(tensor) for tensor in _results(model))
    weights = sum(4 * int(each.shape.num_elements()) for each in model.trainable_variables)
    return batch_size * examples + weights


def need_memory(model: Any, batch_size: int, processes: int, free: int | None = None) -> None:
    """Go on where a step of so many examples has room in the memory of this machine.

    Args:
        batch_size: Examples of this process.
        processes: That share the machine.
        free: Its free memory [bytes]; None to look. TensorFlow reports a lack on GPUs.

    Raises:
        JobFailed: It has not.
    """
    if free is None:
        free = None if tf.config.get_visible_devices("GPU") else free_bytes()
    needed = step_bytes(model, batch_size)
    if free is not None and needed > free // processes:
        raise JobFailed(
            "training",
            f"--batch_size {batch_size}: a step takes at least {needed / 1e9:,.1f} GB of memory, "
            f"and {free / processes / 1e9:,.1f} GB are free for this worker: lower --batch_size, "
            "--height and --width, or begin fewer workers",
        )


def free_bytes(meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP, own: Path = _OWN) -> int | None:
    """Memory that processes may still take here, within their container; None where nothing tells.

    The limits of the process's control group and of each above it hold (Slurm, systemd).

    Source: kernel.org, proc(5), MemAvailable [kB]; cgroups(7), /proc/self/cgroup; cgroup-v2,
    memory.max, memory.current [bytes]
    """
    limits = [_available(meminfo), *map(_left, _groups(cgroup, own))]
    return min((each for each in limits if each is not None), default=None)


def _groups(cgroup: Path, own: Path) -> list[Path]:
    """The folders of the process's control group and of those above it."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    group = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    folder = cgroup / group
    return [folder, *(each for each in folder.parents if each.is_relative_to(cgroup))]


def _available(meminfo: Path) -> int | None:
    try:
        for line in meminfo.read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _left(cgroup: Path) -> int | None:
    """The bytes that a container's limit leaves; files that it holds in memory would give way."""
    try:
        limit, used = (
            (cgroup / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current")
        )
        about = dict(
            line.split() for line in (cgroup / "memory.stat").read_text("ascii").splitlines()
        )
        gives_way = int(about.get("inactive_file", 0)) + int(about.get("active_file", 0))
        return max(0, int(limit) - int(used) + gives_way)
    except (OSError, ValueError):  # no container, or "max"
        return None


def _results(model: Any) -> Iterator[Any]:
    """The tensors that a model's layers give, those of models within it too."""
    for layer in getattr(model, "layers", ()):
        if hasattr(layer, "layers"):
            yield from _results(layer)
            continue
        try:
            outputs = layer.output
        except AttributeError:  # the user's own, called in no graph of layers
            continue
        yield from tf.nest.flatten(outputs)


def _bytes(tensor: Any) -> int:
    """The bytes of one example."""
    shape = tensor.shape[1:]
    known = [int(side) for side in shape if side is not None]
    return int(math.prod(known)) * int(tf.as_dtype(tensor.dtype).size)
