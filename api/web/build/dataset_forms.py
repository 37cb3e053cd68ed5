"""The forms of datasets as the bodies that REST takes, with the same words for what is wrong."""

from collections.abc import Iterable
from typing import Any

from api.web.forms import Form, names
from catalog.errors import InvalidInput
from query.sets.as_written import parse_allocation, parse_demands, parse_targets
from query.sets.stratifier import parse_stratifiers

_DIVISION = ("split", "split_by", "min_gap_s", "seed")


def new_dataset(form: Form) -> dict[str, Any]:
    """The fields of api.schemas.new_datasets.NewDataset in a form, but its name and its question."""
    fields = division(form) | {"method": _method(form)}
    if disjoint := names(form.get("disjoint_from")):
        fields["disjoint_from"] = disjoint
    return fields


def division(form: Form) -> dict[str, Any]:
    """The fields of api.schemas.new_datasets.NewSplit in a form; what is left empty is left out."""
    fields: dict[str, Any] = {name: text for name in _DIVISION if (text := form.get(name))}
    if text := form.get("stratify_splits"):
        fields["stratify_splits"] = _strata(text)
    return fields | {"allow_leakage": bool(form.get("allow_leakage"))}


def extension(form: Form) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The demands of a form, those that are ticked and those that are typed; and how to meet them.

    Raises:
        InvalidInput: There is none, or one cannot be read.
    """
    demands = parse_demands(filter(None, (*form.all("demand"), form.get("demands"))))
    if not demands:
        raise InvalidInput(
            "gaps: tick what is to be added, or type it, such as bicycle=50 or camera/bicycle=20"
        )
    fields = {name: text for name in ("split", "min_gap_s", "seed") if (text := form.get(name))}
    return demands, fields | {"allow_leakage": bool(form.get("allow_leakage"))}


def _method(form: Form) -> dict[str, Any] | None:
    """The method of choosing among the frames; None for all of them."""
    method = form.get("method")
    fields: dict[str, Any] = {"method": method}
    if method == "sample":
        fields |= _given(form, "frames")
        if text := form.get("stratify"):
            fields["stratify"] = _strata(text)
        if text := form.get("allocation"):
            fields["allocation"] = parse_allocation(text, "allocation")
    elif method == "match":
        fields |= _given(form, "frames", "like", "like_split", "tolerance")
        if text := form.get("by"):
            fields["by"] = _strata(text)
        if text := form.get("targets"):
            is_csv = not text.startswith("{")
            fields["targets"] = parse_targets(text, "targets", is_csv=is_csv)
    elif method == "cover":
        fields["demands"] = parse_demands(filter(None, [form.get("demands")]))
    elif method == "uncertain":
        fields |= _given(form, "frames", "tag", "per_scene", "pool")
        fields["lowest"] = bool(form.get("lowest"))
    elif method:
        raise InvalidInput(
            f"method '{method[:40]}': expected sample, match, cover, uncertain, or none"
        )
    else:
        return None
    return fields


def _given(form: Form, *fields: str) -> dict[str, str]:
    """Those that are filled in; methods share names, and without scripts all are sent."""
    filled = {name: [text for each in form.all(name) if (text := each.strip())] for name in fields}
    return {name: texts[-1] for name, texts in filled.items() if texts}


def _strata(text: str) -> Iterable[str]:
    return tuple(one.to_text() for one in parse_stratifiers(text))
