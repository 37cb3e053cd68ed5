"""What a scan says of camera images of both kinds, of which it reads a few kB."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from catalog.errors import ArchivedFile
from ingest.labels.class_list import ClassList
from ingest.layouts.layout import FrameId
from ingest.scan.pair_frames import FrameFiles
from ingest.scan.read_frame import FrameCount, read_frame
from ingest.sources.local_folder import LocalFolder
from tests.drawn_jpegs import BASELINE, GOOD, HEIGHT, REFUSED, WIDTH, exif, jpeg_of, with_segments
from tests.ingest.png_writer import Picture, encode

CLASSES = ClassList.from_colours({"#000000": "Void", "#ff0000": "Car 1", "#0000ff": "Sky"})


@dataclass
class Counting:
    """A folder whose reads are noted."""

    folder: LocalFolder

    def __post_init__(self) -> None:
        self.whole: list[str] = []
        self.ranges: list[tuple[str, int, int]] = []

    def read(self, key: str) -> bytes:
        """As of the folder."""
        self.whole.append(key)
        return self.folder.read(key)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """As of the folder."""
        self.ranges.append((key, start, length))
        return self.folder.read_range(key, start, length)


class Frames:
    """Frames whose label has some pixels of each class, and whose images are given."""

    def __init__(self, root: Path) -> None:
        self.root, self.source = root, Counting(LocalFolder(root))
        label = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        label[:10], label[10, :7] = (0, 0, 255), (255, 0, 0)
        Image.fromarray(label).save(root / "label.png")

    def count(self, content: bytes, name: str = "image.jpg") -> FrameCount:
        """What a scan has of a frame with such an image."""
        (self.root / name).write_bytes(content)
        files = {file.key: file for file in self.source.folder.list()}
        self.source.whole.clear()
        self.source.ranges.clear()
        frame = FrameFiles(
            FrameId("s", "s", "front_center", "", 1, "", ()),
            image=files[name],
            label=files["label.png"],
        )
        return read_frame(self.source, frame, CLASSES)

    def problem(self, content: bytes, name: str = "image.jpg") -> tuple[str, str, str]:
        """The one problem of such a frame."""
        count = self.count(content, name)
        (problem,) = count.problems
        assert (count.width, count.pixels) == (0, ())
        return problem.kind, problem.key, problem.reason


@pytest.fixture
def frames(tmp_path: Path) -> Frames:
    """A folder with a label."""
    return Frames(tmp_path)


@pytest.mark.parametrize("name", ["image.jpg", "IMAGE.JPEG", "image.png"])
def test_jpegs_are_counted_and_not_read(frames: Frames, name: str) -> None:
    """Whatever their names end in; at most four ranges of each, and the same counts."""
    large = jpeg_of(Image.effect_noise((WIDTH, HEIGHT), 80), quality=100)
    for form, jpeg in {**GOOD, "noise": large}.items():
        count = frames.count(jpeg, name)
        assert count.problems == (), form
        assert (count.width, count.height) == (WIDTH, HEIGHT)
        assert count.pixels == (WIDTH * 28 - 7, 7, WIDTH * 10)
        assert frames.source.whole == ["label.png"], form
        few = 4 if "profile" in form else 3 if "EXIF" in form or name == "image.png" else 2
        assert len(frames.source.ranges) <= few, form
        lengths = sum(length for _, _, length in frames.source.ranges)
        assert count.bytes_read <= (frames.root / "label.png").stat().st_size + lengths


def test_a_png_named_as_a_jpeg_is_a_png(frames: Frames) -> None:
    """It is counted; cut short it says so."""
    png = encode(Picture([[(1, 2, 3)] * WIDTH] * HEIGHT))
    assert frames.count(png).problems == ()
    assert "PNG is truncated" in frames.problem(png[:-9])[2]
    assert len(frames.source.ranges) == 2
    assert frames.source.whole == ["label.png", "image.jpg", "image.jpg"]


def test_an_image_of_another_size(frames: Frames) -> None:
    """The label's problem, in the same words for both kinds."""
    words = f"label is {WIDTH}x{HEIGHT} pixels, its camera image 52x38"
    smaller = Image.new("RGB", (52, 38))
    assert frames.problem(jpeg_of(smaller)) == ("bad_file", "label.png", words)
    png = encode(Picture([[(1, 2, 3)] * 52] * 38))
    assert frames.problem(png, "image.png") == ("bad_file", "label.png", words)


def test_what_is_cut_short_or_not_read_is_the_images_problem(frames: Frames) -> None:
    """Also where the thumbnail in its header is whole, or 64 kB of it are; each by its reason."""
    thumbnail = GOOD["64 kB of EXIF"]
    cuts = (
        BASELINE[:-1], BASELINE[:700], BASELINE[:3], thumbnail[:-2], thumbnail[:65_000],
        GOOD["thumbnail"][: GOOD["thumbnail"].index(b"\xff\xd9") + 2], GOOD["progressive"][:-900],
    )  # fmt: skip
    for content in cuts:
        kind, key, reason = frames.problem(content)
        assert (kind, key) == ("bad_file", "image.jpg")
        assert reason.startswith("JPEG is truncated: ends after")
    for words, content in REFUSED.items():
        kind, key, reason = frames.problem(content)
        assert (kind, key) == ("bad_file", "image.jpg")
        assert words in reason
    turned = frames.problem(with_segments(BASELINE, exif(6)))[2]
    assert turned.startswith("JPEG is to be turned or mirrored (EXIF orientation 6)")
    for content in (b"GIF89a" + bytes(50), b""):
        assert frames.problem(content)[0] == "bad_file"
    assert "neither a PNG nor a JPEG image but a GIF image" in frames.problem(b"GIF89a")[2]


def test_padding_behind_the_end_is_passed_over(frames: Frames) -> None:
    """Of any length: a long one costs reading the image."""
    assert frames.count(BASELINE + bytes(3_000)).problems == ()
    assert frames.source.whole == ["label.png"]
    assert frames.count(BASELINE + bytes(30_000)).problems == ()
    assert frames.source.whole == ["label.png", "image.jpg"]
    assert frames.problem(BASELINE[:-2] + bytes(30_000))[0] == "bad_file"


def test_an_archived_image_is_left_alone(frames: Frames, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its frame counts: not every listing tells of archives."""

    def archived(key: str, *_: int) -> bytes:
        raise ArchivedFile("is in an archive", key)

    monkeypatch.setattr(frames.source, "read_range", archived)
    assert frames.count(b"").problems == ()
    assert frames.source.whole == ["label.png"]


@pytest.mark.wide
def test_real_frames_are_counted_as_an_independent_count(frames: Frames) -> None:
    """Proves it for all 468 of CamVid, and that each cut image is one bad file of its frame."""
    if "CAMVID_ROOT" not in os.environ:
        pytest.skip("CAMVID_ROOT is unset: no real JPEG frames here")
    source = Counting(LocalFolder(Path(os.environ["CAMVID_ROOT"])))
    files = {file.key: file for file in source.folder.list()}
    classes = [{"key": n, "name": f"class {n}", "colour": "#808080"} for n in range(12)]
    class_list = ClassList.from_json({"encoding": "index", "classes": classes})
    images = [key for key in files if key.endswith(".jpg")]
    assert len(images) == 468
    for number, key in enumerate(images):
        label = key.replace("images/", "labels/").replace(".jpg", ".png")
        identity = FrameId("scene", "scene", "front_center", "", number, "", ())
        frame = FrameFiles(identity, image=files[key], label=files[label])
        count = read_frame(source, frame, class_list)
        assert count.problems == ()
        pixels = np.asarray(Image.open(source.folder.folder / label))
        assert count.pixels == tuple(np.bincount(pixels.ravel(), minlength=12))
    assert not set(images) & set(source.whole)
    content = (source.folder.folder / images[7]).read_bytes()
    kind, key, reason = frames.problem(content[: len(content) // 2])
    assert (kind, key) == ("bad_file", "image.jpg")
    assert reason.startswith("JPEG is truncated")
