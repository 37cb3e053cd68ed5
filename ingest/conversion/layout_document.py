"""The layout of converted labels: where they lie beside the images, and the keys of their classes.

A layout that is there already keeps its keys, so that labels made earlier stay right; what a user
wrote into it (a class's tag, a camera) stays as well.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from posixpath import commonpath
from typing import Any

from catalog.errors import InvalidInput
from catalog.storage.atomic_write import atomic_write
from ingest.conversion.annotations import UNLABELED, Category
from ingest.labels.class_list import tag_name
from ingest.layouts.layout import Layout
from ingest.layouts.read_layout import preset

LABELS = "labels"
"""Folder of the labels, below the data set's root."""

FILE = "layout.toml"

_IMAGES = "**/{frame}.{jpg,jpeg,png,JPG,JPEG,PNG}"
_LABELS = "**/{frame}.png"
_HEAD = "# framesift labels convert wrote this; it adds classes, and keeps what else you change.\n"
_SMALL, _LARGE = 255, 65_535
"""Keys of pixels without class where 0 is a class's, of 8-bit and of 16-bit labels."""


def read_document(root: Path) -> dict[str, Any] | None:
    """The layout file at a data set's root; None where there is none.

    Raises:
        InvalidInput: It cannot be read.
    """
    path = root / FILE
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path}: is no layout: {error}; repair or remove it") from error


def general(below: str, old: Mapping[str, Any] | None, root: Path) -> dict[str, Any]:
    """A layout without classes: each label lies as its image does, below the folder of labels.

    Args:
        below: Folder of the images below the root; "" for the root itself.
        old: The layout that is there. Where its images lie elsewhere, both are below one folder.

    Raises:
        InvalidInput: The layout that is there pairs files in another way.
    """
    if old is not None:
        before = str(old.get("images", "")).removesuffix(_IMAGES)
        if any(old.get(name) != text for name, text in _patterns(before).items()):
            raise _another(root)
        below = commonpath([before.strip("/"), below]) if before and below else ""
    return {**(old or {}), **_patterns(f"{below}/" if below else "")}


def of_cityscapes(old: Mapping[str, Any] | None, root: Path) -> dict[str, Any]:
    """The preset's layout without classes, the labels in their own folder.

    Raises:
        InvalidInput: The layout that is there pairs files in another way.
    """
    document = {key: value for key, value in preset("cityscapes").document.items() if key != "name"}
    stem = "{scene}_{sequence:6}_{frame_number:6}"
    document["labels"] = f"{LABELS}/{{split}}/{{scene}}/{stem}_labelIds.png"
    for name in ("images", "labels", "encoding"):
        if old is not None and old.get(name) != document[name]:
            raise _another(root)
    return {key: value for key, value in {**document, **(old or {})}.items() if key != "classes"}


def cityscapes_label(image: str) -> str:
    """Path of a label below the folder of labels, by its image's path.

    >>> cityscapes_label("leftImg8bit/val/ulm/ulm_000001_000019_leftImg8bit.png")
    'val/ulm/ulm_000001_000019_labelIds.png'
    """
    return image.removeprefix("leftImg8bit/").removesuffix("_leftImg8bit.png") + "_labelIds.png"


def label_of(image: str) -> str:
    """Path of a label below the folder of labels, by its image's path below the data set's root."""
    path = PurePosixPath(image)
    is_image = path.suffix.lower() in (".jpg", ".jpeg", ".png")
    return str(path.with_suffix(".png")) if is_image else f"{image}.png"


def classes_with(rows: Iterable[Any], categories: Sequence[Category]) -> list[dict[str, Any]]:
    """Classes of a layout with those of annotations, each with its key, and one for no class.

    Raises:
        InvalidInput: A key is one class's there and another's in the annotations.
    """
    classes = [dict(row) for row in rows]
    name_of_key = {key: row["name"] for row in classes for key in _keys(row)}
    named = {name: key for key, name in reversed(name_of_key.items())}
    for each in categories:
        if each.key is None:
            continue
        name = name_of_key.get(each.key)
        if name is None:
            name_of_key[each.key] = each.name
            named.setdefault(each.name, each.key)
            classes.append(_row(each, each.key))
        elif name != each.name:
            raise InvalidInput(
                f"key {each.key} is '{name}' already, and '{each.name}' in the annotations; "
                "convert them into another folder"
            )
    without = next((name for name in named if tag_name(name) == UNLABELED), None)
    if without is None and not any(tag_name(each.name) == UNLABELED for each in categories):
        key = next(key for key in (0, _SMALL, _LARGE) if key not in name_of_key
                   and (key != _SMALL or max(name_of_key) < _SMALL))  # fmt: skip
        name_of_key[key] = UNLABELED
        classes.append({"key": key, "name": UNLABELED, "colour": "#000000", "ignore": True})
    free = iter(key for key in range(1, _LARGE) if key not in name_of_key)
    for each in categories:
        if each.key is None and each.name not in named:
            named[each.name] = next(free)
            classes.append(_row(each, named[each.name]))
    return classes


def keys_by_name(classes: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Key of each class, the first where it has several, and UNLABELED's by this name."""
    keys: dict[str, int] = {}
    for row in classes:
        name = str(row["name"])
        keys.setdefault(name, _keys(row)[0])
        if tag_name(name) == UNLABELED:
            keys.setdefault(UNLABELED, _keys(row)[0])
    return keys


def write_document(root: Path, document: Mapping[str, Any]) -> None:
    """Write the layout file; checked first.

    Raises:
        InvalidInput: It is no layout, such as for 256 classes.
    """
    Layout.of(document)
    settings = {key: value for key, value in document.items() if key != "classes"}
    lines = [
        _HEAD,
        *(f"{key} = {_toml(value)}\n" for key, value in settings.items()),
        "classes = [\n",
    ]
    lines += [f"  {_toml(row)},\n" for row in document["classes"]]
    atomic_write(root / FILE, "".join([*lines, "]\n"]), parents=True)


def _patterns(before: str) -> dict[str, Any]:
    return {
        "images": before + _IMAGES,
        "labels": f"{LABELS}/{before}{_LABELS}",
        "encoding": "index",
    }


def _another(root: Path) -> InvalidInput:
    return InvalidInput(
        f"{root / FILE}: pairs images and labels in another way than these labels will lie; "
        "convert them into another folder, or move that file away"
    )


def _keys(row: Mapping[str, Any]) -> list[int]:
    return row["key"] if isinstance(row["key"], list) else [row["key"]]


def _row(category: Category, key: int) -> dict[str, Any]:
    row: dict[str, Any] = {"key": key, "name": category.name}
    row |= {"colour": category.colour} if category.colour else {}
    is_ignored = category.ignore or tag_name(category.name) == UNLABELED
    return row | ({"ignore": True} if is_ignored else {})


def _toml(value: Any) -> str:
    """A value as TOML writes it; texts are JSON's, which TOML reads alike."""
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{_key(key)} = {_toml(each)}" for key, each in value.items()) + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if key.isidentifier() and key.isascii() else json.dumps(key)
