"""Shares, targets and demands as users write them: in options, in files, in forms."""

import csv
import json
from collections.abc import Iterable
from typing import Any

from catalog.errors import InvalidInput
from query.question.question import Question
from query.sets.methods import Demand


def parse_allocation(text: str, what: str) -> str | dict[str, float]:
    """The allocation written as ``proportional``, ``equal``, or ``front_center=0.7,*=0.3``.

    Args:
        what: What it was given as, for the message.

    Raises:
        InvalidInput: It is not written so.
    """
    if "=" not in text:
        return text
    shares: dict[str, float] = {}
    for pair in text.split(","):
        name, _, share = pair.rpartition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            raise InvalidInput(
                f"{what} '{text}': expected proportional, equal, or shares such as "
                "front_center=0.7,rear_center=0.3"
            ) from None
    return shares


def parse_targets(text: str, what: str, *, is_csv: bool) -> dict[str, dict[str, Any]]:
    """Wanted shares by tag and value.

    JSON: ``{"camera": {"front_center": 0.7, "*": 0.3}}``. CSV, with this header line:
    ``tag,value,share``.

    Raises:
        InvalidInput: It is not written so.
    """
    targets: dict[str, dict[str, Any]] = {}
    try:
        if is_csv:
            for row in csv.DictReader(text.splitlines(), strict=True):
                targets.setdefault(row["tag"], {})[row["value"]] = float(row["share"])
        else:
            targets = dict(json.loads(text))
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise InvalidInput(
            f'{what}: expected JSON such as {{"camera": {{"front_center": 0.7, "*": 0.3}}}}, '
            f"or CSV with the columns tag, value, share ({' '.join(str(error).split())})"
        ) from error
    return targets


def parse_demands(texts: Iterable[str], conditions: Iterable[str] = ()) -> tuple[Demand, ...]:
    """Demands written as ``car=100,bicycle=50``, and conditions as ``rain = 1=50``.

    Raises:
        InvalidInput: One is not written so.
    """
    demands = [Demand.parse(one) for text in texts for one in text.split(",")]
    for text in conditions:
        where, _, number = text.rpartition("=")
        if not where.strip() or not number.strip().isdecimal() or not int(number):
            raise InvalidInput(
                f"'{text}': expected CONDITION=FRAMES, such as \"weather = 'fog'=30\""
            )
        question = Question(where=where.strip())
        demands.append(Demand(question=question, frames=int(number), name=where.strip()))
    return tuple(demands)
