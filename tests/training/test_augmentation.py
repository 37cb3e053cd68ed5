"""Augmentation: the same for an example wherever it is read, and labels that fit their image."""

import numpy as np
import pytest

from catalog.errors import UnknownName
from ingest.labels.class_list import UNKNOWN_CLASS
from pipeline.example_order import Example
from pipeline.prepared.decoded_frames import UInt8
from pipeline.runs.augmentations import AUGMENTATIONS, augmentations_in
from training.input.augmentation import augmented


def frame() -> tuple[UInt8, UInt8]:
    """A frame whose image shows its label: 20 times the class id, in blocks of 8 pixels."""
    blocks = np.random.default_rng(0).integers(0, 12, (8, 12), np.uint8)
    label = blocks.repeat(8, axis=0).repeat(8, axis=1)
    return np.stack([label * 20] * 3, axis=-1), label


@pytest.mark.parametrize("names", [("crop",), ("scale",), ("crop", "scale")])
def test_label_and_image_stay_together(names: tuple[str, ...]) -> None:
    """Proves each pixel of a label is what its image shows, outlines aside; no class is made up."""
    image, label = frame()
    reached, shares = [], []
    for place in range(40):
        shown, taken = augmented(image, label, Example(3, 1, place), 7, names)
        assert (shown.shape, taken.shape) == (image.shape, label.shape)
        assert taken.dtype == np.uint8
        assert set(np.unique(taken)) <= {*range(12), UNKNOWN_CLASS}
        inside = taken != UNKNOWN_CLASS
        fits = np.abs(shown[..., 0].astype(int) - taken * 20) <= 10
        reached.append(float(inside.mean()))
        shares.append(float(fits[inside].mean()))
        assert inside.all() or (shown[~inside] == 127).mean() > 0.9
    assert np.mean(shares) > 0.8
    assert (min(reached) < 0.7) is ("scale" in names)
    assert max(reached) == 1


def test_it_follows_from_seed_and_place() -> None:
    """Proves an example is the same wherever it is read, and others differ; none is untouched."""
    image, label = frame()
    for names in (("crop",), ("scale",), ("colour",)):
        one, again, other = (
            augmented(image, label, Example(row, 0, place), 7, names)
            for row, place in ((3, 5), (4, 5), (3, 6))
        )
        assert np.array_equal(one[0], again[0])
        assert np.array_equal(one[1], again[1])
        assert not np.array_equal(one[0], other[0])
    assert augmented(image, label, Example(3, 0, 5), 7, ("mirror",))[0] is image


def test_colours_change_and_labels_do_not() -> None:
    """Proves the label is the same array and the colours keep their order."""
    image, label = frame()
    shown, same = augmented(image, label, Example(3, 0, 5), 7, ("colour",))
    assert same is label
    levels = [int(shown[..., 0][image[..., 0] == level][0]) for level in np.unique(image)]
    assert levels == sorted(levels)


def test_names() -> None:
    """Proves what a flag may say."""
    assert augmentations_in("colour, crop,mirror") == ("mirror", "crop", "colour")
    assert augmentations_in(",".join(AUGMENTATIONS)) == AUGMENTATIONS
    assert augmentations_in("none") == ()
    with pytest.raises(UnknownName, match="unknown augmentation 'blur'"):
        augmentations_in("mirror,blur")
