"""The prepared form: what a training decodes, once for all, and never a wrong frame."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from api.schemas.stagings import Staged
from api.services.session import Session
from catalog.errors import BadFile, CacheFull, InvalidInput, StorageError
from catalog.storage.file_version import version_of
from ingest.labels.class_list import ClassList
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.cache.beat import Watch
from pipeline.cache.lease import Holder, held_leases, leased
from pipeline.cache.limits import Limits, write_limits
from pipeline.cache.reservation import Reservation
from pipeline.manifest import Manifest
from pipeline.manifest_rows import FRAMES_SCHEMA
from pipeline.prepared.before_training import prepare_or_report
from pipeline.prepared.class_file import class_text
from pipeline.prepared.form import PreparedRows, form_bytes, form_key, prepared_rows
from pipeline.prepared.prepare import BLOCK_FRAMES, prepare
from pipeline.runs.size import Size
from pipeline.staging.fetch import FailedFile
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_datasets import make
from tests.training.drawn_frames import CLASS_LIST, FrameFiles, draw_frames, write_manifest
from training.input.frame_reader import FrameReader

PALETTE = DatasetClasses.of(ClassList.from_colours(CLASS_LIST))
SIZE = Size(height_px=32, width_px=40)


def staged(base: Path, files: dict[str, list[FrameFiles]], unlabelled: int | None = None) -> Path:
    """A manifest that knows versions, in the place of a staged one in the cache ``base``."""
    folder = base / ".manifests" / "drawn-v1"
    manifest = write_manifest(folder, base, files)
    rows = manifest.frames.to_pylist()
    for number, row in enumerate(rows):
        for kind in ("image", "label"):
            row[f"{kind}_version"] = version_of((base / row[kind]).stat())
        if number == unlabelled:
            row |= dict.fromkeys(("label_source", "label", "label_size", "label_version"))
            row["class_pixels"] = None
    Manifest(manifest.header, pa.Table.from_pylist(rows, FRAMES_SCHEMA)).write(folder)
    return folder


def opened(folder: Path, split: str, size: Size = SIZE) -> tuple[Manifest, PreparedRows | None]:
    """A split, and its rows of the form."""
    frames = Manifest.read(folder).split(split)
    return frames, prepared_rows(frames, size)


def damage(path: Path, length: int = 100) -> None:
    """Zero the last bytes of a file; its size and time stay."""
    status = path.stat()
    with path.open("r+b") as file:
        file.seek(-length, os.SEEK_END)
        file.write(bytes(length))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.wide
@pytest.mark.parametrize("processes", [1, 2])
def test_every_frame_is_what_decoding_gives(tmp_path: Path, processes: int) -> None:
    """Proves images, labels and sizes equal the decode path's bit for bit, in split and shard.

    By this process and by others; made once more, nothing is decoded.
    """
    files = draw_frames(tmp_path, 2 * BLOCK_FRAMES + 3, unknown=True)
    folder = staged(tmp_path, {"train": files[:20], "validation": files[20:]})
    told: list[tuple[int, int]] = []
    summary = prepare(folder, SIZE, processes=processes, progress=lambda *n: told.append(n))
    assert (summary.frames, summary.decoded, summary.bad) == (len(files), len(files), ())
    assert told[-1] == (len(files), len(files))
    for split in ("train", "validation"):
        frames, rows = opened(folder, split)
        assert rows is not None
        frames = frames.shard(1, 2)
        rows = prepared_rows(frames, SIZE)
        decoding = FrameReader(frames, PALETTE, SIZE)
        prepared = FrameReader(frames, PALETTE, SIZE, prepared=rows)
        assert rows is not None
        for row in range(len(frames)):
            assert rows.small(row) is not None
            for ours, theirs in zip(prepared.small(row), decoding.small(row), strict=True):
                assert ours.dtype == theirs.dtype
                assert ours.tolist() == theirs.tolist()
            assert prepared.image(row)[1] == decoding.image(row)[1] == (64, 96)
            assert (prepared.frame(row).label == decoding.frame(row).label).all()
    assert prepare(folder, SIZE, processes=processes).decoded == 0
    assert [path.name for path in (tmp_path / ".prepared").iterdir()] == [summary.folder.name]


def test_real_frames_are_what_decoding_gives(a2d2_root: Path, tmp_path: Path) -> None:
    """Proves it for real images, at the size of a training."""
    files = []
    for image in sorted(a2d2_root.rglob("*/camera/*/*.png"))[:2]:
        label = Path(str(image).replace("/camera/", "/label/").replace("_camera_", "_label_"))
        for path in (image, label):
            shutil.copy(path, tmp_path)
        files.append(FrameFiles("scene", image.name, label.name))
    folder = staged(tmp_path, {"train": files})
    prepare(folder, Size(152, 240), processes=1)
    frames, rows = opened(folder, "train", Size(152, 240))
    assert rows is not None
    decoding = FrameReader(frames, PALETTE, Size(152, 240))
    for row in range(2):
        for ours, theirs in zip(rows.small(row) or (), decoding.small(row), strict=True):
            assert (ours == theirs).all()


def test_damaged_and_unlabelled_frames_are_decoded_as_without_a_form(tmp_path: Path) -> None:
    """Proves a bad frame is named, its error the same as decoding's, and made once it is mended."""
    files = draw_frames(tmp_path, 4)
    folder = staged(tmp_path, {"train": files}, unlabelled=2)
    path = tmp_path / files[1].label
    whole, status = path.read_bytes(), path.stat()
    path.write_bytes(whole[:60] + bytes(len(whole) - 60))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    prepared = prepare(folder, SIZE)
    assert prepared.decoded == 3
    assert len(prepared.bad) == 1
    frames, rows = opened(folder, "train")
    reader = FrameReader(frames, PALETTE, SIZE, prepared=rows)
    with pytest.raises(BadFile) as refused:
        reader.small(1)
    assert str(refused.value) == f"{prepared.bad[0].file}: {prepared.bad[0].reason}"
    assert prepared.bad[0].file == str(path)
    with pytest.raises(BadFile, match="has no label"):
        reader.small(2)
    assert reader.image(2)[1] == (64, 96)
    assert rows is not None
    assert rows.lacks().tolist() == [1, 2]
    path.write_bytes(whole)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert reader.small(1)[1].shape == (32, 40)
    again = prepare(folder, SIZE)
    assert (again.decoded, again.bad) == (1, ())
    assert opened(folder, "train")[1] is not None


@pytest.mark.parametrize("damaged", [["images.npy"], ["labels.npy"], ["images.npy", "labels.npy"]])
def test_damage_is_noticed_and_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damaged: list[str]
) -> None:
    """Proves a row with either array changed on the disk is decoded instead, said, alone remade."""
    folder = staged(tmp_path, {"train": draw_frames(tmp_path, 3)})
    prepared = prepare(folder, SIZE)
    frames, good = opened(folder, "train")
    assert good is not None
    expected = [np.array(array) for array in good.small(2) or ()]
    for name in damaged:
        damage(prepared.folder / name)
    _, rows = opened(folder, "train")
    assert rows is not None
    assert rows.small(1) is not None
    assert rows.small(2) is None
    reader = FrameReader(frames, PALETTE, SIZE, prepared=rows)
    assert [array.tolist() for array in reader.small(2)] == [array.tolist() for array in expected]
    reader.small(2)
    assert capsys.readouterr().out.count("lacks frames, or some were damaged") == 1
    assert prepare(folder, SIZE).decoded == 1
    _, rows = opened(folder, "train")
    assert rows is not None
    assert [array.tolist() for array in rows.small(2) or ()] == [a.tolist() for a in expected]


@pytest.mark.parametrize("file", ["images.npy", "labels.npy", "frames.npy", "prepared.json"])
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_partial_form_is_none(tmp_path: Path, file: str, how: str) -> None:
    """Proves a form that lacks part of a file is not used, and made again as a whole."""
    folder = staged(tmp_path, {"train": draw_frames(tmp_path, 2)})
    path = prepare(folder, SIZE).folder / file
    if how == "cut":
        os.truncate(path, path.stat().st_size - 20)
    else:
        path.unlink()
    assert opened(folder, "train")[1] is None
    assert prepare(folder, SIZE).decoded == 2
    assert opened(folder, "train")[1] is not None


def test_what_decides_the_arrays_is_in_the_key(tmp_path: Path) -> None:
    """Proves another version, size, class list or its order is another form, beside the first."""
    files = draw_frames(tmp_path, 2)
    folder = staged(tmp_path, {"train": files})
    prepare(folder, SIZE)
    assert opened(folder, "train", Size(40, 32))[1] is None
    os.utime(tmp_path / files[0].image, ns=(0, 0))
    staged(tmp_path, {"train": files})
    assert opened(folder, "train")[1] is None
    assert prepare(folder, SIZE).decoded == 2
    manifest = Manifest.read(folder)
    colours = {("#0a0b0c" if name == "Sky" else key): name for key, name in CLASS_LIST.items()}
    Manifest(
        replace(manifest.header, class_list=ClassList.from_colours(colours)), manifest.frames
    ).write(folder)
    assert opened(folder, "train")[1] is None
    prepare(folder, SIZE)
    # Class ids follow the order of the list, which is equal as a dictionary.
    backwards = dict(reversed(colours.items()))
    assert backwards == colours
    Manifest(
        replace(manifest.header, class_list=ClassList.from_colours(backwards)), manifest.frames
    ).write(folder)
    assert opened(folder, "train")[1] is None
    prepare(folder, SIZE)
    assert len(list((tmp_path / ".prepared").iterdir())) == 4


def test_the_key_is_of_all_that_decides_and_of_nothing_else(tmp_path: Path) -> None:
    """Proves each file's version, size and place, their order, classes and sources are in it.

    Neither the dataset's name nor where its sources lie is.
    """
    whole = Manifest.read(staged(tmp_path, {"train": draw_frames(tmp_path, 3)}))
    rows, header = whole.frames.to_pylist(), whole.header

    def changed(column: str, value: object) -> Manifest:
        other = [*rows[:2], rows[2] | {column: value}]
        return replace(whole, frames=pa.Table.from_pylist(other, FRAMES_SCHEMA))

    def headed(**fields: Any) -> Manifest:
        return replace(whole, header=replace(header, **fields))

    names = {name: f"{of}2" for name, of in header.datasources.items()}
    others = [
        *(changed(f"{kind}_version", "x") for kind in ("image", "label")),
        *(changed(f"{kind}_size", 1) for kind in ("image", "label")),
        *(changed(kind, "x.png") for kind in ("image", "label")),
        changed("fkey", "x"),
        replace(whole, frames=whole.frames.take([1, 0, 2])),
        headed(class_list=replace(header.class_list, keys=header.class_list.keys[::-1])),
        headed(datasources=names or dict.fromkeys(header.roots, "elsewhere:x")),
    ]
    keys = [form_key(one, SIZE) for one in (whole, *others)]
    keys.append(form_key(whole, Size(height_px=SIZE.width_px, width_px=SIZE.height_px)))
    assert None not in keys
    assert len({*keys}) == len(keys)
    places = dict.fromkeys(header.roots, "/elsewhere")
    assert form_key(headed(name="other", version=7, roots=places), SIZE) == keys[0]
    assert form_key(changed("image_version", None), SIZE) is None
    assert form_key(changed("label_version", None), SIZE) is None


def test_damaged_checksums_are_no_form(tmp_path: Path) -> None:
    """Proves what says which rows are good is itself known to be good."""
    folder = staged(tmp_path, {"train": draw_frames(tmp_path, 2)})
    damage(prepare(folder, SIZE).folder / "frames.npy", 5)
    assert opened(folder, "train")[1] is None


@pytest.mark.wide
def test_a_staging_names_the_frames_that_cannot_be_decoded(
    catalogued: Path, tmp_path: Path
) -> None:
    """Proves the others are prepared, and that the frame is made once its copy is whole."""
    workspace = open_home(copy_home(catalogued, tmp_path))
    make(workspace)
    stagings = Session(workspace).stagings
    failed: list[FailedFile] = []

    def stage(*, verify: bool = False) -> Staged:
        return stagings.run(
            "streets",
            cache=None,
            workers=1,
            progress=lambda _: None,
            failed=failed.append,
            verify=verify,
            prepare="40x32",
        )

    first = stage()
    assert first.prepared is not None
    frames = first.prepared.frames
    shutil.rmtree(first.prepared.folder)
    label = Path(str(Manifest.read(Path(first.manifest)).label_paths()[1]))
    whole = label.read_bytes()
    label.write_bytes(whole[:60] + bytes(len(whole) - 60))
    with pytest.raises(BadFile) as refused:
        stage()
    assert f"{frames - 1} of the {frames} frames of streets@1 are prepared at 40x32" in str(
        refused.value
    )
    assert [failure.origin for failure in failed] == [str(label)]
    repair = f"framesift cache verify streets@1 --cache {workspace.cache}"
    assert failed[0].reason.endswith(f"; {repair} fetches it again")
    again = stage(verify=True)
    assert again.prepared is not None
    assert (again.files_copied, again.prepared.made) == (1, 1)
    workspace.close()


def test_a_form_takes_room_in_its_cache(tmp_path: Path) -> None:
    """Proves it counts, is held with its dataset, and goes when it was used least recently."""
    folder = staged(tmp_path, {"train": draw_frames(tmp_path, 2)})
    headers = 4096 + len(class_text(PALETTE))
    space = form_bytes(len(Manifest.read(folder)), SIZE) + headers
    with leased(tmp_path, folder.name, Holder("drawn@1")) as lease:
        reservation = Reservation(tmp_path, lease)
        write_limits(tmp_path, Limits(hard_bytes=space - 1))
        with pytest.raises(CacheFull):
            prepare(folder, SIZE, reservation=reservation)
        write_limits(tmp_path, Limits(hard_bytes=space))
        form = prepare(folder, SIZE, reservation=reservation).folder
        with pytest.raises(CacheFull, match="drawn@1 itself"):
            reservation.extend(space, 1)
    with leased(tmp_path, "another-v1", Holder("another@1")) as lease:
        Reservation(tmp_path, lease).extend(space, 1)
    assert not form.exists()
    assert list((tmp_path / ".prepared").iterdir()) == []


def test_a_training_s_job_makes_the_form_or_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Proves its stage says what stands in the way, and makes the form once that is gone."""
    files = draw_frames(tmp_path, 3)
    write_manifest(tmp_path / "plain", tmp_path, {"train": files})
    folder = staged(tmp_path, {"train": files})
    damage(tmp_path / files[1].label)

    def stage() -> str:
        prepare_or_report(folder, SIZE, "train-1")
        return capsys.readouterr().out

    write_limits(tmp_path, Limits(hard_bytes=100))
    said = stage()
    assert "no prepared form of 40x32: cache" in said
    assert "limited to" in said
    assert said.endswith("the training decodes its frames\n")
    write_limits(tmp_path, Limits())
    (tmp_path / ".prepared").write_text("in the way")
    assert "no prepared form of 40x32" in stage()
    (tmp_path / ".prepared").unlink()
    said = stage()
    assert f"failed: {tmp_path / files[1].label}: " in said
    assert "preparing the 3 frames of drawn@1 at 40x32, which this training then reads" in said
    assert "\ndecoded 2 frames; prepared form of " in said
    assert opened(folder, "train")[1] is not None
    assert "drawn@1 is prepared at 40x32 already, nothing is decoded" in stage()
    assert held_leases(tmp_path, Watch()) == []
    prepare_or_report(tmp_path / "plain", SIZE, "train-1")
    assert "is no staged manifest" in capsys.readouterr().out


def test_refusals(tmp_path: Path) -> None:
    """Proves what cannot be prepared is refused, each in words that say what to do."""
    files = draw_frames(tmp_path, 1)
    write_manifest(tmp_path / "plain", tmp_path, {"train": files})
    with pytest.raises(InvalidInput, match="stage it first"):
        prepare(tmp_path / "plain", SIZE)
    with pytest.raises(InvalidInput, match="has no frames"):
        prepare(staged(tmp_path, {"train": []}), SIZE)
    for text in ("240", "0x5", "9000x8", "240X152", "-8x8"):
        with pytest.raises(InvalidInput, match="expected WIDTHxHEIGHT"):
            Size.parse(text)
    folder = staged(tmp_path, {"train": files})
    (tmp_path / ".prepared").write_text("in the way")
    with pytest.raises(StorageError, match=r"\.prepared.*the form needs"):
        prepare(folder, SIZE)
