"""Objects by labels and fields, as lists and watches ask for them."""

import re
from collections.abc import Callable

from tests.kubernetes_stand_in.failures import Failure, Json

Matches = Callable[[Json], bool]
_SET = re.compile(r"([\w./-]+)\s+(in|notin)\s+\(([^()]*)\)")
_FIELDS = {
    "metadata.name", "metadata.namespace", "status.phase", "spec.nodeName", "involvedObject.name",
    "involvedObject.kind", "involvedObject.uid", "involvedObject.namespace", "reason", "type",
    "status.successful",
}  # fmt: skip


def by_labels(selector: str) -> Matches:
    """What a labelSelector matches."""
    wanted = [_label(each.strip()) for each in re.split(r",(?![^(]*\))", selector) if each.strip()]

    def matches(item: Json) -> bool:
        labels = item["metadata"].get("labels") or {}
        return all(each(labels) for each in wanted)

    return matches


def _label(text: str) -> Matches:
    if parts := _SET.fullmatch(text):
        name, values = parts[1], {each.strip() for each in parts[3].split(",")}
        return lambda labels: (labels.get(name) in values) == (parts[2] == "in")
    if "!=" in text:
        name, _, value = text.partition("!=")
        return lambda labels: labels.get(name.strip()) != value.strip()
    if "=" in text:
        name, _, value = text.replace("==", "=").partition("=")
        return lambda labels: labels.get(name.strip()) == value.strip()
    if re.fullmatch(r"!?[\w./-]+", text):
        return lambda labels: (text.lstrip("!") in labels) != text.startswith("!")
    raise Failure(
        400, "BadRequest", f'unable to parse requirement: found "{text}", expected: !, identifier'
    )


def by_fields(selector: str) -> Matches:
    """What a fieldSelector matches."""
    wanted: list[tuple[list[str], bool, str]] = []
    for each in filter(None, selector.split(",")):
        name, _, value = each.replace("==", "=").partition("=")
        is_equal = not name.endswith("!")
        name = name.removesuffix("!")
        if name not in _FIELDS:
            raise Failure(400, "BadRequest", f"field label not supported: {name}")
        wanted.append((name.split("."), is_equal, value))
    return lambda item: all(
        (str(_field(item, names)) == value) == is_equal for names, is_equal, value in wanted
    )


def _field(item: Json, names: list[str]) -> object:
    value: object = item
    for name in names:
        value = value.get(name, "") if isinstance(value, dict) else ""
    return value
