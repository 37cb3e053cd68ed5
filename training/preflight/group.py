"""Ranks that meet: what a preflight needs of Horovod or of torch.distributed.

Each call is one that all ranks make, in the same order.
"""

import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from catalog.errors import InvalidInput

_MEETING = "torch_ranks"
"""File in the job's folder by which ranks of torch.distributed find each other."""


class Group(Protocol):
    """Ranks that meet."""

    rank: int
    size: int
    local_rank: int
    way: str
    """What carries the messages, as the library says: "Gloo", "NCCL", "MPI"."""
    device: str
    """What holds them: the name of this rank's GPU, or "CPU"."""
    versions: dict[str, str]
    """Of what the library was built with."""

    def buffer(self, elements: int) -> Any:
        """A message of float32 ones."""
        ...

    def allreduce(self, buffer: Any) -> Any:
        """The sum of all ranks' messages, once it is there."""
        ...

    def wrong(self, summed: Any) -> int:
        """Elements of a sum of ones that are not the number of ranks."""
        ...

    def transfer(self, buffer: Any, source: int, target: int) -> None:
        """Send the source's message to the target; the others pass the time."""
        ...

    def texts(self, text: str) -> list[str]:
        """Every rank's text, on every rank."""
        ...


class HorovodGroup:
    """Ranks that Horovod joins, as trainings are."""

    def __init__(self) -> None:
        """Meet the others."""
        import horovod.tensorflow as horovod
        import tensorflow as tf

        horovod.init()
        self.horovod, self._tf = horovod, tf
        self.rank, self.size = horovod.rank(), horovod.size()
        self.local_rank = horovod.local_rank()
        gpus = tf.config.list_physical_devices("GPU")
        self.device = "CPU"
        if gpus:
            own = gpus[self.local_rank % len(gpus)]
            tf.config.set_visible_devices(own, "GPU")
            details = tf.config.experimental.get_device_details(own)
            self.device = str(details.get("device_name", "GPU"))
        uses_nccl = bool(gpus) and bool(horovod.nccl_built())
        on_cpu = "MPI" if horovod.mpi_enabled() else "Gloo"
        self.way = "NCCL" if uses_nccl else on_cpu
        build = tf.sysconfig.get_build_info()
        self.versions = {
            "cuda": str(build.get("cuda_version", "")),
            "cudnn": str(build.get("cudnn_version", "")),
            "horovod's NCCL": str(horovod.nccl_built() or ""),
        }

    def buffer(self, elements: int) -> Any:
        """A message of float32 ones."""
        return self._tf.ones([elements], self._tf.float32)

    def allreduce(self, buffer: Any) -> Any:
        """The sum of all ranks' messages, once it is there."""
        name = f"preflight_{int(buffer.shape[0])}"
        summed = self.horovod.allreduce(buffer, op=self.horovod.Sum, name=name)
        summed[:1].numpy()  # a GPU's queue is awaited
        return summed

    def wrong(self, summed: Any) -> int:
        """Elements of a sum of ones that are not the number of ranks."""
        return int(np.count_nonzero(summed.numpy() != self.size))

    def transfer(self, buffer: Any, source: int, target: int) -> None:
        """Send the source's message to the target: an alltoall in which the others send nothing."""
        elements = int(buffer.shape[0])
        counts = np.zeros(self.size, np.int32)
        if self.rank == source:
            counts[target] = elements
        sent = buffer if self.rank == source else buffer[:0]
        name = f"preflight_{source}_{target}_{elements}"
        received, _ = self.horovod.alltoall(sent, splits=self._tf.constant(counts), name=name)
        received[:1].numpy()

    def texts(self, text: str) -> list[str]:
        """Every rank's text, on every rank."""
        # Not allgather_object, which unpickles what comes by the network.
        own = self._tf.constant([*f"{' '.join(text.split())}\n".encode()], self._tf.uint8)
        joined = bytes(self.horovod.allgather(own, name="preflight_texts").numpy()).decode()
        return joined.split("\n")[:-1]


class TorchGroup:
    """Ranks that torch.distributed joins, by NCCL where each has a GPU and else by gloo."""

    def __init__(self, folder: Path, attempt: int) -> None:
        """Meet the others.

        Args:
            folder: The job's, which all ranks see: a file there brings them together.
            attempt: The job's: another one meets at another file.
        """
        import torch
        import torch.distributed as dist

        self._torch, self._dist = torch, dist
        try:
            self.rank, self.size = (
                int(os.environ["FRAMESIFT_RANK"]),
                int(os.environ["FRAMESIFT_RANKS"]),
            )
        except KeyError as error:
            raise InvalidInput(
                f"{error.args[0]}: is not set; start ranks by framesift preflight --through torch"
            ) from error
        self.local_rank = int(os.environ.get("FRAMESIFT_LOCAL_RANK", "0"))
        has_gpu = torch.cuda.is_available()
        self._device = "cuda" if has_gpu else "cpu"
        self.device = "CPU"
        if has_gpu:
            torch.cuda.set_device(self.local_rank % torch.cuda.device_count())
            self.device = str(torch.cuda.get_device_name())
        self.way = "NCCL" if has_gpu and dist.is_nccl_available() else "Gloo"
        dist.init_process_group(
            self.way.lower(),
            init_method=f"file://{folder}/{_MEETING}-{attempt}",
            rank=self.rank,
            world_size=self.size,
        )
        self.versions = {"cuda": str(torch.version.cuda or ""), "torch": str(torch.__version__)}

    def buffer(self, elements: int) -> Any:
        """A message of float32 ones."""
        return self._torch.ones(elements, device=self._device)

    def allreduce(self, buffer: Any) -> Any:
        """The sum of all ranks' messages, once it is there; a copy, as Horovod gives one."""
        summed = buffer.clone()
        self._dist.all_reduce(summed)
        self._wait()
        return summed

    def wrong(self, summed: Any) -> int:
        """Elements of a sum of ones that are not the number of ranks."""
        return int((summed != self.size).sum())

    def transfer(self, buffer: Any, source: int, target: int) -> None:
        """Send the source's message to the target; the others pass the time."""
        if self.rank == source:
            self._dist.send(buffer, target)
        elif self.rank == target:
            self._dist.recv(self._torch.empty_like(buffer), source)
        self._wait()

    def texts(self, text: str) -> list[str]:
        """Every rank's text, on every rank."""
        torch = self._torch
        own = f"{' '.join(text.split())}\n".encode()
        lengths = [torch.zeros(1, dtype=torch.int64, device=self._device) for _ in range(self.size)]
        self._dist.all_gather(lengths, torch.tensor([len(own)], device=self._device))
        longest = max(int(each) for each in lengths)
        padded = torch.tensor([*own.ljust(longest)], dtype=torch.uint8, device=self._device)
        parts = [torch.zeros_like(padded) for _ in range(self.size)]
        self._dist.all_gather(parts, padded)
        return [bytes(part.cpu().tolist()).decode().rstrip(" \n") for part in parts]

    def _wait(self) -> None:
        if self._device == "cuda":
            self._torch.cuda.synchronize()
