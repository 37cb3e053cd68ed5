"""The exchange of gradients between the workers of a training: options of Horovod."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from catalog.errors import InvalidInput

REDUCTIONS = ("average", "adasum")
COMPRESSIONS = ("none", "fp16")
_MOST = 65_536
_EXPECTED = (
    "expected some of fusion_mb=NUMBER, cycle_ms=NUMBER, compression=none|fp16, "
    "reduce=average|adasum"
)


@dataclass(frozen=True)
class Exchange:
    """The exchange of gradients between workers.

    >>> Exchange.parsed("reduce=adasum,fusion_mb=32").text
    'fusion_mb=32,reduce=adasum'
    """

    fusion_mb: float | None = None
    """Gradients are put together into messages of so many MiB; 0 for each by itself, None for
    Horovod's own choice.
    """
    cycle_ms: float | None = None
    """Time between two looks for gradients that are ready [ms]; None as above."""
    compression: str = "none"
    """"fp16" sends halves, "none" what there is."""
    reduce: str = "average"
    """"average", or "adasum", which adds what is orthogonal and averages what is parallel."""

    @classmethod
    def parsed(cls, text: str) -> "Exchange":
        """The options that ``NAME=VALUE,...`` says; an empty text says nothing.

        Raises:
            InvalidInput: A name or a value cannot be.
        """
        pairs = [each.partition("=") for each in text.split(",") if each]
        return cls.of({name: value for name, _, value in pairs})

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Exchange":
        """The exchange that options by name say; numbers may be text.

        Raises:
            InvalidInput: A name or a value cannot be.
        """
        values = {name: value for name, value in options.items() if value is not None}
        for name, value in values.items():
            if name in ("fusion_mb", "cycle_ms"):
                values[name] = _number(name, value)
            elif value not in {"compression": COMPRESSIONS, "reduce": REDUCTIONS}.get(name, ()):
                raise InvalidInput(f"horovod {name[:40]}={str(value)[:40]}: {_EXPECTED}")
        return cls(**values)

    @property
    def text(self) -> str:
        """The options that differ from Horovod's own choice, as `parsed` reads it."""
        own = Exchange()
        pairs = [(name, getattr(self, name)) for name in vars(own)]
        return ",".join(
            f"{name}={value if isinstance(value, str) else f'{value:g}'}"
            for name, value in pairs
            if value != getattr(own, name)
        )


def exchange_in(text: str) -> dict[str, Any]:
    """The options by name that a flag's text says; see `Exchange.parsed`."""
    return asdict(Exchange.parsed(text))


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= _MOST:
        raise InvalidInput(f"horovod {name}={str(value)[:40]}: {_EXPECTED}")
    return number
