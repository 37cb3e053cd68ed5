"""JPEG images on their way from a source to a network: staged, prepared, read."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from catalog.errors import BadFile, StorageError
from framesift.data import open_frames
from ingest.labels.label_image import UInt8
from ingest.sources.opened_file import OpenedFile
from pipeline.cache.aligned_buffer import Buffers
from pipeline.cache.md5.lanes import Md5Lanes
from pipeline.cache.verify import Verifier
from pipeline.manifest import Manifest
from pipeline.prepared.form import prepared_rows
from pipeline.prepared.full_form import full_rows
from pipeline.prepared.prepare import prepare
from pipeline.runs.size import FULL
from pipeline.staging import arrival
from pipeline.staging.arrival import arriving
from tests.drawn_jpegs import BASELINE, GOOD, exif, jpeg_of, with_segments
from tests.pipeline.test_prepared import PALETTE, SIZE, staged
from tests.training.drawn_frames import FrameFiles, draw_frames
from training.input.frame_reader import FrameReader


def drawn(root: Path, frames: int) -> list[FrameFiles]:
    """Drawn frames: a PNG, a JPEG, a progressive one and so on; one JPEG is named as a PNG."""
    files = []
    for number, frame in enumerate(draw_frames(root, frames)):
        if number % 3:
            name = frame.image.replace(".png", ".jpg") if number != 2 else frame.image
            picture = Image.open(root / frame.image)
            picture.load()
            (root / frame.image).unlink()
            jpeg = jpeg_of(picture, progressive=number % 3 == 2)
            (root / name).write_bytes(jpeg)
            frame = FrameFiles(frame.scene, name, frame.label)
        files.append(frame)
    return files


@pytest.mark.parametrize("size", [SIZE, FULL])
def test_forms_are_what_decoding_gives(size: object, tmp_path: Path) -> None:
    """Of both kinds of images, small and whole; a frame that is to be turned is none of them.

    Pixels of JPEGs are those that Pillow decodes, averaged over area.
    """
    files = drawn(tmp_path, 7)
    expected = {frame.image: _pixels(tmp_path / frame.image) for frame in files}
    turned = tmp_path / files[4].image
    turned.write_bytes(with_segments(turned.read_bytes(), exif(8)))
    folder = staged(tmp_path, {"train": files})
    made = prepare(folder, FULL if size == FULL else SIZE, processes=1)
    assert (made.frames, made.decoded) == (7, 6)
    (bad,) = made.bad
    assert bad.file == str(turned)
    assert "(EXIF orientation 8)" in bad.reason
    frames = Manifest.read(folder).split("train")
    of_files = FrameReader(frames, PALETTE, SIZE)
    of_form = FrameReader(
        frames, PALETTE, SIZE, prepared=prepared_rows(frames, SIZE), full=full_rows(frames)
    )
    with pytest.raises(BadFile, match="EXIF orientation 8"):
        of_files.small(4)
    for frame in files:
        if frame is not files[4]:
            os.utime(tmp_path / frame.image, ns=(0, 0))  # a reader of files would refuse it
    for row, frame in enumerate(files):
        if frame is not files[4]:
            small = Image.fromarray(expected[frame.image])
            shape = SIZE.width_px, SIZE.height_px
            averaged = np.asarray(small.resize(shape, Image.Resampling.BOX))
            assert np.array_equal(of_form.image(row)[0], averaged)
            with pytest.raises(BadFile, match="has changed since"):
                of_files.image(row)


def test_a_program_of_a_user_reads_the_same(tmp_path: Path) -> None:
    """Images of a manifest by framesift.data, pixel by pixel."""
    files = drawn(tmp_path, 4)
    opened = open_frames(staged(tmp_path, {"train": files}))
    for (image, _), frame in zip(opened, files, strict=True):
        assert np.array_equal(image, _pixels(tmp_path / frame.image))


def _pixels(path: Path) -> UInt8:
    return np.asarray(Image.open(path).convert("RGB"))


@pytest.mark.parametrize("is_large", [False, True])
def test_a_damaged_jpeg_does_not_come_into_the_cache(
    is_large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut short, or with other bytes in its header; the same twice is the source's. Whole ones do.

    What else is damaged its source's checksum tells, and its decoder.
    """
    if is_large:
        monkeypatch.setattr(arrival, "LARGEST_BYTES", 100)
    buffers, lanes = Buffers(), Md5Lanes()
    for name, content in {**GOOD, "no image": b"text" * 99}.items():
        with arriving(tmp_path / "part", len(content), buffers, lanes) as coming:
            coming.take(opened_of(content))
            coming.check(None, None)
            coming.commit(tmp_path / "whole.jpg")
        assert (tmp_path / "whole.jpg").read_bytes() == content, name
        assert Verifier().fault_of(tmp_path / "whole.jpg", len(content), set())[0] == ""
    for content, words in (
        (BASELINE[:-2], "JPEG is truncated: ends after"),
        (GOOD["thumbnail"][:900], "JPEG is truncated: ends after 900 bytes"),
        (BASELINE[:20] + bytes(99) + BASELINE[119:], "JPEG is damaged: no segment begins"),
    ):
        with arriving(tmp_path / "part", len(content), buffers, lanes) as coming:
            coming.take(opened_of(content))
            with pytest.raises(StorageError, match=f"came damaged: {words}"):
                coming.check(None, None)
            coming.restart()
            coming.take(opened_of(content))
            with pytest.raises(BadFile, match=f"is damaged: {words}"):
                coming.check(None, None)
        (tmp_path / "cut.jpg").write_bytes(content)
        fault, _ = Verifier().fault_of(tmp_path / "cut.jpg", len(content), set())
        assert fault.startswith(words)


def opened_of(content: bytes) -> OpenedFile:
    """A file that has come."""
    return OpenedFile(len(content), "mtime:1", iter([content[:50], content[50:]]))
