"""NCCL's own lines (NCCL_DEBUG=INFO) that say by which way ranks exchange.

Source: docs.nvidia.com/deeplearning/nccl, environment variables, NCCL_DEBUG; nccl src/transport/
net_ib.cc ("NET/IB : Using [0]mlx5_0:1/IB ..."), net_socket.cc, net.cc ("... via NET/IB/0/GDRDMA")
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

_VERSION = re.compile(r"NCCL version (\d+(?:\.\d+)*)")
_USING = re.compile(r"NCCL INFO NET/(IB|Socket) ?: Using (.*)")
_PORT = re.compile(r"\[\d+\](\S+?):")
_VIA = re.compile(r"NCCL INFO (?:Channel|Ring) \S+ ?: .*\bvia (\S+)")
_NO_IB = re.compile(r"NCCL INFO NET/IB ?: No device found")


@dataclass(frozen=True)
class NcclWay:
    """The way by which NCCL exchanges, as its log says."""

    version: str = ""
    """Of NCCL; empty where the log says nothing."""
    network: str = ""
    """"IB", "Socket", or empty."""
    ports: tuple[str, ...] = ()
    """Devices of the network, such as mlx5_0 or eth0."""
    channels: dict[str, int] = field(default_factory=dict)
    """Connections by their way: NET/IB/GDRDMA, NET/IB, NET/Socket, P2P, SHM."""
    proof: tuple[str, ...] = ()
    """The first line of each of these, word for word."""

    @property
    def crosses_by(self) -> str:
        """The way between machines: of several the slowest; empty where no connection says it."""
        of_net = [way for way in self.channels if way.startswith("NET/")]
        order = ("NET/Socket", "NET/IB", "NET/IB/GDRDMA")
        return next((way for way in order if way in of_net), of_net[0] if of_net else "")


def nccl_way(lines: Iterable[str]) -> NcclWay:
    """The way that the lines of a log say; nothing in it where none is NCCL's."""
    version, network, ports = "", "", list[str]()
    channels, proof = Counter[str](), dict[str, str]()
    for line in lines:
        if match := _VERSION.search(line):
            version = version or match[1]
        elif match := _USING.search(line):
            network = match[1]
            ports = [*dict.fromkeys([*ports, *_PORT.findall(match[2].partition(" ; ")[0])])]
            proof.setdefault(f"network {network}", line.strip())
        elif _NO_IB.search(line):
            proof.setdefault("no InfiniBand", line.strip())
        elif match := _VIA.search(line):
            way = _short(match[1])
            channels[way] += 1
            proof.setdefault(way, line.strip())
    return NcclWay(version, network, tuple(ports), dict(channels), tuple(proof.values()))


def _short(way: str) -> str:
    """A connection's way without its device: NET/IB/0/GDRDMA is NET/IB/GDRDMA, P2P/CUMEM P2P."""
    words = way.split("/")
    if words[0] != "NET":
        return words[0]
    gpu_direct = any(word.startswith("GDRDMA") for word in words)
    return "/".join((*words[:2], *(("GDRDMA",) if gpu_direct else ())))
