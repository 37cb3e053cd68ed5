"""A layout to begin with, made from names that fit no preset."""

from collections.abc import Sequence
from itertools import permutations

_IMAGES = (".jpg", ".jpeg", ".png")
_LABELS = (".png",)
_LABEL_WORDS = ("label", "mask", "sem", "gt", "ann", "seg", "ids", "class")
_SPLITS = {"train", "val", "test", "training", "validation", "testing", "trainval"}

CLASSES_TO_FILL_IN = """
# Your classes: the key is what a label's pixels hold.
# [[classes]]
# key = 0
# name = "background"
# ignore = true
#
# [[classes]]
# key = 1
# name = "car"
# colour = "#0000ff"
"""
"""End of a layout file that has no classes yet."""


def draft(names: Sequence[str]) -> str:
    """A layout file, TOML, that pairs some of these names; one to be filled in where none pair."""
    images, labels = _pair(names) or ("images/{frame}.jpg", "labels/{frame}.png")
    return "\n".join(
        [
            f'images = "{images}"',
            f'labels = "{labels}"',
            'encoding = "index"  # index, colour, index//1000, index//256, channel:0',
            'camera = "front_center"',
            '# classes = "cityscapes"  # in place of all [[classes]]: a known data set has them',
            "",
            "[[classes]]",
            "key = 0",
            'name = "background"',
            "ignore = true",
            "",
            "[[classes]]",
            "key = 1",
            'name = "car"',
            'colour = "#0000ff"',
        ]
    )


def _pair(names: Sequence[str]) -> tuple[str, str] | None:
    """Patterns of images and labels, of the two folders whose names share most stems."""
    kinds: dict[tuple[str, str], list[str]] = {}
    trees: dict[tuple[str, str], list[str]] = {}
    for name in names:
        folder, _, file = name.rpartition("/")
        ending = "." + file.rpartition(".")[2].lower()
        kinds.setdefault((folder, ending), []).append(name)
        trees.setdefault((folder.partition("/")[0], ending), []).append(name)
    stems = {
        (folder, ending): _stems(
            of_kind, of_kind if len(of_kind) > 1 else trees[folder.partition("/")[0], ending]
        )
        for (folder, ending), of_kind in kinds.items()
    }
    pairs = [
        (of_images[min(shared)], of_labels[min(shared)], len(shared))
        for (image_kind, of_images), (label_kind, of_labels) in permutations(stems.items(), 2)
        if image_kind[1] in _IMAGES and label_kind[1] in _LABELS
        if (shared := of_images.keys() & of_labels.keys())
    ]
    if not pairs:
        return None
    image, label, _ = max(pairs, key=lambda pair: _likeness(*pair))
    return _patterns(image, label, names)


def _likeness(image: str, label: str, frames: int) -> tuple[object, ...]:
    """What tells which of two pairs of folders is rather one of images and labels."""
    folders, label_folders = image.split("/")[:-1], label.split("/")[:-1]
    words = [word for word in _LABEL_WORDS if word in label.lower() and word not in image.lower()]
    shared = len(set(folders) & set(label_folders))
    return frames, bool(words), shared, image.lower().endswith((".jpg", ".jpeg")), image, label


def _stems(names: Sequence[str], alike: Sequence[str]) -> dict[str, str]:
    """Names by what of their files tells them apart: without what all that are alike end in."""
    stems, folders_of_names = ([name.rpartition("/")[2].rpartition(".")[0] for name in each]
                     for each in (names, alike))  # fmt: skip
    ending = (
        _common(*(stem[::-1] for stem in folders_of_names))[::-1]
        if len(folders_of_names) > 1
        else ""
    )
    start = next((n for n, character in enumerate(ending) if character in "_-."), len(ending))
    ending = ending[start:]
    cut = len(ending) if any(character.isalpha() for character in ending) else 0
    return {stem[: len(stem) - cut]: name for stem, name in zip(stems, names, strict=True)}


def _common(*texts: str) -> str:
    """What all texts begin with."""
    least, most = min(texts), max(texts)
    same = (n for n, (a, b) in enumerate(zip(least, most, strict=False)) if a != b)
    return least[: next(same, len(least))]


def _patterns(image: str, label: str, names: Sequence[str]) -> tuple[str, str]:
    *folders, file = image.split("/")
    *label_folders, label_file = label.split("/")
    stem = _common(file.rpartition(".")[0], label_file.rpartition(".")[0]).rstrip("_-.")
    folders_of_names = [name.split("/")[:-1] for name in names]
    varying = {
        level
        for position, level in enumerate(folders)
        if any(len(each) == len(folders) and each[position] != level and
               each[:position] == folders[:position] for each in folders_of_names)
    }  # fmt: skip
    shared = set(folders) & set(label_folders)
    pairs = enumerate(zip(folders, label_folders, strict=False))
    first = next((position for position, (one, other) in pairs if one != other), len(folders))
    varying |= set(folders[first + 1 :])  # below the folder of images, though only one was seen
    fields = {level: "{split}" for level in shared if level in _SPLITS}
    # What lies deepest and is in both paths is as a rule a drive.
    scenes = [level for level in folders if level in shared & varying and level not in fields]
    fields |= dict.fromkeys(scenes[-1:], "{scene}")

    def pattern(parts: list[str], name: str) -> str:
        return "/".join([*(fields.get(level, level) for level in parts), name])

    return (
        pattern(folders, "{frame}" + file[len(stem) :]),
        pattern(label_folders, "{frame}" + label_file[len(stem) :]),
    )
