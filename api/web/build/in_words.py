"""Strata, targets and demands of a set in words: *Car: 1,000 pixels or more* for ``car:1000``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_BIN = re.compile(r"(-?[0-9.e+-]*):(-?[0-9.e+-]*)")
_OF_CLASS = {"absent": "not there", "present": "there"}
_OTHERS = {"*": "all others", "none": "without a value"}
_SCARCE = re.compile(r"(?<=missing of )(.+?)(?= and \d+ more$|$)")


@dataclass(frozen=True)
class Words:
    """The words of a home's tags."""

    classes: Mapping[str, str]
    """The name of each class, by its tag."""

    def marginal(self, marginal: str) -> str:
        """What a set is compared by: the name of a class, or a tag."""
        tag, _, edges = marginal.partition(":")
        return f"{self.classes[tag]} [pixels]" if edges and tag in self.classes else self._name(tag)

    def value(self, marginal: str, value: str) -> str:
        """One of its values: a bin of a number, whether a class is there, or the value itself."""
        tag = marginal.partition(":")[0]
        if value in _OTHERS:
            return _OTHERS[value]
        if tag in self.classes and value in _OF_CLASS:
            return _OF_CLASS[value]
        ends = _BIN.fullmatch(value) if ":" in marginal else None
        return value if ends is None else self._bin(tag, ends[1], ends[2])

    def target(self, marginal: str, value: str) -> str:
        """A value that has a target, with what it is one of."""
        tag = marginal.partition(":")[0]
        said = self.value(marginal, value)
        return f"{self.classes[tag]}, {said}" if tag in self.classes else f"{tag} {said}"

    def stratum(self, stratifiers: Sequence[str], label: str) -> str:
        """A stratum: its values, those of classes and numbers with their names.

        Args:
            stratifiers: As the set's method has them; where they are not known, or a value has a
                slash, the label stays as it is.
        """
        values = label.split("/")
        if len(values) != len(stratifiers):
            return label
        return ", ".join(map(self._named_value, stratifiers, values))

    def demand(self, demand: str) -> str:
        """What frames are wanted of: a class, its pixels, and the values that it is wanted for."""
        *values, last = demand.split("/")
        tag, _, pixels = last.partition(":")
        if tag not in self.classes:
            return demand
        least = f": {int(pixels):,} pixels or more" if pixels.isdecimal() else ""
        return ", ".join((f"{self.classes[tag]}{least}", *values))

    def reason(self, marginal: str, reason: str) -> str:
        """Why a value misses its target, with the values that it stands in for in words."""
        return _SCARCE.sub(
            lambda scarce: ", ".join(self.value(marginal, one) for one in scarce[1].split(", ")),
            reason,
        )

    def _named_value(self, stratifier: str, value: str) -> str:
        tag, _, edges = stratifier.partition(":")
        said = self.value(stratifier, value)
        return f"{self._name(tag)}: {said}" if edges or tag in self.classes else said

    def _name(self, tag: str) -> str:
        return self.classes.get(tag, tag)

    def _bin(self, tag: str, low: str, high: str) -> str:
        """The bin from a number on to below another; of pixels, which are whole, to the last."""
        is_class = tag in self.classes
        unit = " pixels" if is_class else ""
        if not high:
            return f"{_number(low)}{unit} or more"
        if not low:
            return f"fewer than {_number(high)}{unit}" if is_class else f"below {_number(high)}"
        if is_class and low.isdecimal() and high.isdecimal():
            last = int(high) - 1
            return f"{_number(low)}{f' to {last:,}' if last > int(low) else ''}{unit}"
        return f"{_number(low)} to below {_number(high)}{unit}"


def _number(text: str) -> str:
    return f"{int(text):,}" if text.lstrip("-").isdecimal() else text
