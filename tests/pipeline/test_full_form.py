"""The prepared form at full size: what decoding gives, bit for bit, and never a wrong frame."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import framesift
from api.services.session import Session
from catalog.errors import BadFile, CacheFull, InvalidInput
from framesift.data import open_frames
from ingest.labels.class_list import ClassList
from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.numbered_colours import NumberedColours
from pipeline.cache.lease import Holder, leased
from pipeline.cache.limits import Limits, write_limits
from pipeline.cache.reservation import Reservation
from pipeline.jobs.program.hand_over import hand_over_form
from pipeline.manifest import Manifest
from pipeline.prepared.form import prepared_rows
from pipeline.prepared.full_form import FullRows, full_rows, open_full_form
from pipeline.prepared.in_cache import prepare_in_cache
from pipeline.prepared.packed import image_of, most_bytes, packed_image, packed_label
from pipeline.prepared.prepare import BLOCK_FRAMES, prepare
from pipeline.runs.size import FULL, FormSize, Size, form_size
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_datasets import make
from tests.pipeline.test_prepared import PALETTE, SIZE, damage, staged
from tests.training.drawn_frames import CLASS_LIST, CLASSES, FrameFiles, draw_frames
from training.input.frame_reader import FrameReader

NUMBERED = NumberedColours.of(DatasetClasses.of(CLASSES))


def drawn(root: Path, frames: int) -> list[FrameFiles]:
    """Drawn frames, of which the second and the last are of other sizes."""
    files = draw_frames(root, frames, unknown=True)
    for number, size in ((1, (50, 70)), (-1, (131, 33))):
        for path in (root / files[number].image, root / files[number].label):
            Image.open(path).resize(size, Image.Resampling.NEAREST).save(path)
    return files


def opened(folder: Path, split: str) -> tuple[Manifest, FullRows | None]:
    """A split, and its rows of the form."""
    frames = Manifest.read(folder).split(split)
    return frames, full_rows(frames)


def remove_pngs(root: Path, files: list[FrameFiles]) -> None:
    """Leave what was decoded alone to be read."""
    for frame in files:
        (root / frame.image).unlink()
        (root / frame.label).unlink()


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.wide)])
def test_every_frame_is_what_decoding_gives(tmp_path: Path, processes: int) -> None:
    """Proves images, labels, numbered colours and small frames are equal, in split and shard.

    Of frames of three sizes, one of them without a label, by this process and by others; their
    files are gone then. Made once more, nothing is decoded.
    """
    files = drawn(tmp_path, 2 * BLOCK_FRAMES + 3)
    folder = staged(tmp_path, {"train": files[:20], "validation": files[20:]}, unlabelled=4)
    expected = {}
    for split in ("train", "validation"):
        frames = Manifest.read(folder).split(split).shard(0, 2)
        reader = FrameReader(frames, PALETTE, SIZE, numbered=NUMBERED)
        for row, fkey in enumerate(frames.frames["fkey"].to_pylist()):
            labelled = frames.labels()[row] is not None
            expected[fkey] = reader.image(row), reader.frame(row) if labelled else None
    made = prepare(folder, FULL, processes=processes)
    assert (made.frames, made.decoded, made.bad) == (len(files), len(files), ())
    assert made.bytes <= sum(file.stat().st_size for file in made.folder.iterdir())
    assert prepare(folder, FULL, processes=processes).decoded == 0
    remove_pngs(tmp_path, files)
    for split in ("train", "validation"):
        frames = Manifest.read(folder).split(split).shard(0, 2)
        full = full_rows(frames)
        reader = FrameReader(frames, PALETTE, SIZE, full=full, numbered=NUMBERED)
        plain = FrameReader(frames, PALETTE, SIZE, full=full)
        reader.look_for_files()
        for row, fkey in enumerate(frames.frames["fkey"].to_pylist()):
            (image, size_px), frame = expected[fkey]
            assert (reader.image(row)[0] == image).all()
            assert reader.image(row)[1] == size_px
            if frame is None:
                with pytest.raises(BadFile, match="has no label"):
                    reader.frame(row)
                continue
            ours = reader.frame(row)
            assert (ours.label == frame.label).all()
            assert ours.colours is not None
            assert frame.colours is not None
            assert (ours.colours == frame.colours).all()
            assert (plain.frame(row).label == frame.label).all()
    assert [path.name for path in (tmp_path / ".prepared").iterdir()] == [made.folder.name]
    assert made.folder.name.startswith("full-")


def test_real_frames_are_what_decoding_gives(a2d2_root: Path, tmp_path: Path) -> None:
    """Proves it for real images, whose form is smaller than their pixels by half."""
    image = min(a2d2_root.rglob("*/camera/*/*.png"))
    label = Path(str(image).replace("/camera/", "/label/").replace("_camera_", "_label_"))
    for path in (image, label):
        shutil.copy(path, tmp_path)
    folder = staged(tmp_path, {"train": [FrameFiles("scene", image.name, label.name)]})
    reader = FrameReader(Manifest.read(folder), PALETTE, SIZE)
    expected = reader.image(0), reader.frame(0)
    made = prepare(folder, FULL, processes=1)
    frames, full = opened(folder, "train")
    reader = FrameReader(frames, PALETTE, SIZE, full=full)
    assert (reader.image(0)[0] == expected[0][0]).all()
    assert (reader.frame(0).label == expected[1].label).all()
    height_px, width_px = expected[0][1]
    assert made.bytes < 0.55 * 4 * height_px * width_px


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (5, 1), (37, 41)])
def test_noise_comes_back_within_its_bound(shape: tuple[int, int]) -> None:
    """Proves that what cannot be compressed is stored as well, in no more than was reserved."""
    random = np.random.default_rng(3)
    image = random.integers(0, 256, (*shape, 3)).astype(np.uint8)
    label = random.integers(0, 256, shape).astype(np.uint8)
    packed = packed_image(image)
    assert (image_of(np.frombuffer(packed, np.uint8), shape) == image).all()
    assert len(packed) + 2 * len(packed_label(label)) <= most_bytes(*shape)
    large = random.integers(0, 256, (200, 500, 3)).astype(np.uint8)
    all_parts = len(packed_image(large)) + 2 * len(packed_label(large[..., 0]))
    assert all_parts <= most_bytes(200, 500)


def test_a_small_form_is_made_of_the_full_one(tmp_path: Path) -> None:
    """Proves it holds what it holds when it is made of the files, which are gone here."""
    files = drawn(tmp_path, 3)
    folder = staged(tmp_path, {"train": files})
    reader = FrameReader(Manifest.read(folder), PALETTE, SIZE)
    expected = [reader.small(row) for row in range(3)]
    prepare(folder, FULL, processes=1)
    remove_pngs(tmp_path, files)
    assert prepare(folder, SIZE, processes=1).bad == ()
    rows = prepared_rows(Manifest.read(folder).split("train"), SIZE)
    assert rows is not None
    for row, pair in enumerate(expected):
        for ours, theirs in zip(rows.small(row) or (), pair, strict=True):
            assert (ours == theirs).all()


def test_damaged_frames_are_decoded_and_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Proves a bad frame is named, one that was damaged is decoded, and both are made once more.

    The log says so once; those that are whole are copied.
    """
    files = drawn(tmp_path, 4)
    folder = staged(tmp_path, {"train": files})
    path = tmp_path / files[2].label
    whole, status = path.read_bytes(), path.stat()
    path.write_bytes(whole[:60] + bytes(len(whole) - 60))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    made = prepare(folder, FULL, processes=1)
    assert (made.decoded, [bad.file for bad in made.bad]) == (3, [str(path)])
    frames, full = opened(folder, "train")
    reader = FrameReader(frames, PALETTE, SIZE, full=full)
    with pytest.raises(BadFile, match="PNG is damaged: wrong checksum"):
        reader.frame(2)
    with pytest.raises(framesift.BadFile, match="has no frame 2"):
        open_frames(made.folder)[2]
    path.write_bytes(whole)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    expected = [FrameReader(frames, PALETTE, SIZE).frame(row) for row in range(4)]
    damage(made.folder / "frames.lz4", 20)  # of the last frame's colours
    capsys.readouterr()
    numbered = FrameReader(frames, PALETTE, SIZE, full=full, numbered=NUMBERED)
    for row in range(4):
        assert (numbered.frame(row).label == expected[row].label).all()
    assert capsys.readouterr().out.count("lacks frames, or some were damaged") == 1
    assert prepare(folder, FULL, processes=1).decoded == 2
    remove_pngs(tmp_path, files)
    frames, full = opened(folder, "train")
    reader = FrameReader(frames, PALETTE, SIZE, full=full)
    for row in range(4):
        assert (reader.frame(row).label == expected[row].label).all()
        assert (reader.image(row)[0] == expected[row].image).all()


@pytest.mark.parametrize("file", ["frames.lz4", "frames.npy", "prepared.json"])
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_partial_form_is_none(tmp_path: Path, file: str, how: str) -> None:
    """Proves a form that lacks part of a file is not used, and made again as a whole."""
    folder = staged(tmp_path, {"train": draw_frames(tmp_path, 2)})
    path = prepare(folder, FULL, processes=1).folder / file
    if how == "cut":
        os.truncate(path, path.stat().st_size - 20)
    else:
        path.unlink()
    assert opened(folder, "train")[1] is None
    assert prepare(folder, FULL, processes=1).decoded == 2
    assert opened(folder, "train")[1] is not None


def test_another_class_list_reads_no_label_of_it(tmp_path: Path) -> None:
    """Proves labels come with the form's class ids or colours, and otherwise from their files."""
    files = draw_frames(tmp_path, 2)
    folder = staged(tmp_path, {"train": files})
    prepare(folder, FULL, processes=1)
    frames, full = opened(folder, "train")
    backwards = DatasetClasses.of(ClassList.from_colours(dict(reversed(CLASS_LIST.items()))))
    ours = FrameReader(frames, backwards, SIZE, full=full).frame(0).label
    assert (ours == FrameReader(frames, backwards, SIZE).frame(0).label).all()
    assert (ours != FrameReader(frames, PALETTE, SIZE).frame(0).label).any()


def test_it_takes_room_in_its_cache_as_it_is_made(tmp_path: Path) -> None:
    """Proves it counts, is held with its dataset, goes when it was used least recently.

    Where a frame finds no room nothing is left of it.
    """
    folder = staged(tmp_path, {"train": draw_frames(tmp_path, 2)})
    holder = Holder("drawn@1")

    def made(size: FormSize = FULL) -> Path:
        return prepare_in_cache(tmp_path, folder.name, size, holder).folder

    write_limits(tmp_path, Limits(hard_bytes=20_000))
    with pytest.raises(CacheFull, match=r"limited to 0\.02 MB"):
        made()
    assert list((tmp_path / ".prepared").iterdir()) == []
    limit = 3 * most_bytes(64, 96)
    write_limits(tmp_path, Limits(hard_bytes=limit))
    full = made()
    small = made(Size(8, 8))
    with leased(tmp_path, folder.name, holder) as lease:
        with pytest.raises(CacheFull, match="drawn@1 itself"):
            Reservation(tmp_path, lease).extend(limit, 1)
        assert full.exists()
    with leased(tmp_path, "another-v1", Holder("another@1")) as lease:
        Reservation(tmp_path, lease).extend(limit, 1)
    assert not full.exists()
    assert not small.exists()


def test_other_programs_read_it(tmp_path: Path) -> None:
    """Proves framesift.data gives the same frames, of a cache and of a job; damage is an error."""
    files = drawn(tmp_path, 5)
    folder = staged(tmp_path, {"train": files[:3], "validation": files[3:]}, unlabelled=2)
    expected = list(open_frames(folder))
    form = prepare(folder, FULL, processes=1).folder
    manifest = Manifest.read(folder)
    opened_form = open_full_form(manifest)
    assert opened_form is not None
    hand_over_form(tmp_path / "prepared", opened_form, manifest.split("validation"))
    remove_pngs(tmp_path, files)
    for frames, pairs in (
        (open_frames(form), expected),
        (open_frames(tmp_path / "prepared", "validation"), expected[3:]),
    ):
        assert len(frames) == len(pairs)
        for (image, ids), (same_image, same_ids) in zip(frames, pairs, strict=True):
            assert (image.shape, image.flags.writeable) == (same_image.shape, True)
            assert (image == same_image).all()
            assert (ids is None) == (same_ids is None)
            assert ids is None or same_ids is None or (ids == same_ids).all()
    with (form / "frames.lz4").open("r+b") as file:
        file.seek(100)
        file.write(b"\1\2\3")
    frames = open_frames(form)
    with pytest.raises(framesift.BadFile, match="frame 0 is damaged; framesift stage --prepare"):
        frames[0]
    assert (frames[1][0] == expected[1][0]).all()


def test_sizes() -> None:
    """Proves which texts are sizes of a form."""
    assert form_size("full") == FULL
    assert form_size("240x152") == Size(height_px=152, width_px=240)
    for text in ("Full", "full ", "240", "0x5", ""):
        with pytest.raises(InvalidInput, match=r"WIDTHxHEIGHT .*, such as 240x152, or full"):
            form_size(text)


@pytest.mark.wide
def test_a_staging_makes_it(catalogued: Path, tmp_path: Path) -> None:
    """Proves `stage --prepare full` makes it of staged files, and says what was made."""
    workspace = open_home(copy_home(catalogued, tmp_path))
    make(workspace)
    stagings = Session(workspace).stagings
    first, again = (
        stagings.run(
            "streets", cache=None, workers=1, progress=lambda _: None, failed=lambda _: None,
            prepare="full",
        )
        for _ in range(2)
    )  # fmt: skip
    assert first.prepared is not None
    assert again.prepared is not None
    assert (first.prepared.size, first.prepared.made) == ("full", first.prepared.frames)
    assert (again.prepared.made, again.prepared.bytes) == (0, first.prepared.bytes)
    for (image, ids), (same_image, same_ids) in zip(
        open_frames(first.prepared.folder), open_frames(first.manifest), strict=True
    ):
        assert (image == same_image).all()
        assert ids is not None
        assert same_ids is not None
        assert (ids == same_ids).all()
    workspace.close()
