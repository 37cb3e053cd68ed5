"""Extractors by name: the built-in ones, installed ones, and one in a file of the user's own."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from catalog.errors import InvalidInput, UnknownName
from ingest.extractors.base import Extractor

ENTRY_POINTS = "framesift.extractors"
"""Group of entry points by which an installed package offers extractors."""

BUILT_IN = {
    "boxes": "ingest.extractors.boxes:Boxes",
    "bus": "ingest.extractors.bus:Bus",
    "image": "ingest.extractors.image:Image",
    "lidar": "ingest.extractors.lidar:Lidar",
}


def known_extractors() -> dict[str, str]:
    """Name of every extractor -> "module:Class"; a built-in name cannot be taken over."""
    installed = {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    return {**installed, **BUILT_IN}


def check_some(extractors: Sequence[object]) -> None:
    """Refuse to read nothing.

    Raises:
        InvalidInput: No extractor is given.
    """
    if not extractors:
        known = ", ".join(sorted(known_extractors()))
        raise InvalidInput(f"no extractor given: known are {known}; or --extractor FILE.py:CLASS")


def check_known(name: str) -> None:
    """Accept the name of an extractor, without importing it.

    Raises:
        UnknownName: There is none.
    """
    known = known_extractors()
    if name not in known:
        hint = "One in a file of your own: --extractor FILE.py:CLASS."
        raise UnknownName("extractor", name, known, hint)


def extractor_named(name: str) -> Extractor:
    """A new extractor of that name.

    Raises:
        InvalidInput: It cannot be imported, or is no extractor.
    """
    check_known(name)
    known = known_extractors()
    entry = EntryPoint(name, known[name], ENTRY_POINTS)
    try:
        loaded = entry.load() if name not in BUILT_IN else _built_in(known[name])
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"extractor {name} ({known[name]}): {_one_line(error)}") from error
    return _checked(loaded, f"extractor {name} ({known[name]})")


def extractor_in_file(location: str) -> Extractor:
    """A new extractor of a class in a Python file.

    Args:
        location: "path/to/file.py:ClassName".

    Raises:
        InvalidInput: The file or class is not there, fails, or is no extractor.
    """
    path, _, class_name = location.rpartition(":")
    if not path.endswith(".py") or not class_name.isidentifier():
        raise InvalidInput(f"extractor '{location}': expected FILE.py:CLASS")
    if not Path(path).is_file():
        raise InvalidInput(f"extractor '{location}': there is no file {path}")
    name = f"framesift_extractor_{Path(path).stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"extractor '{location}': {path} cannot be imported")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's file raises, it is one line for the user
        kind = type(error).__name__
        raise InvalidInput(
            f"extractor '{location}': importing {path} failed: {kind}: {_one_line(error)}"
        ) from error
    if not hasattr(module, class_name):
        raise InvalidInput(f"extractor '{location}': {path} has no class {class_name}")
    return _checked(getattr(module, class_name), f"extractor '{location}'")


def _built_in(location: str) -> object:
    module, _, name = location.partition(":")
    return getattr(import_module(module), name)


def _checked(candidate: object, what: str) -> Extractor:
    if not isinstance(candidate, type) or not issubclass(candidate, Extractor):
        raise InvalidInput(
            f"{what}: expected a class derived from ingest.extractors.base.Extractor"
        )
    for attribute in ("family", "columns"):
        if not hasattr(candidate, attribute):
            raise InvalidInput(f"{what}: its class does not set '{attribute}'")
    try:
        return candidate()
    except Exception as error:  # an abstract class, or an __init__ that fails
        raise InvalidInput(f"{what}: {type(error).__name__}: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
