"""Model folders of somebody else's: what is in them runs nothing, and takes no more than it has."""

import json
import os
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.errors import BadFile, InvalidInput
from ingest.labels.class_list import ClassList
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.jobs.request import read_json
from pipeline.runs.checkpoint_steps import CHECKPOINT_FILE
from tests.api.servers import framesift
from tests.attacks.arena import Server
from tests.training.drawn_frames import CLASS_LIST, HEIGHT_PX, WIDTH_PX
from tests.training.test_checkpoint import checkpoint
from training.input.trained_frames import FILE, write_trained_frames
from training.network.about_model import ABOUT_FILE, AboutModel
from training.run.checkpoint import Checkpoint
from training.run.metrics_log import read_metrics

CLASSES = ("Sky", "RD normal street", "Car", "Bicycle")
ABOUT = AboutModel(
    sha256="0" * 64,
    network="small_unet",
    step=40,
    classes=CLASSES,
    labels=DatasetClasses.of(ClassList.from_colours(CLASS_LIST)),
    height_px=HEIGHT_PX,
    width_px=WIDTH_PX,
    workers=1,
    dataset={"name": "drawn", "version": 1, "id": "drawn-1", "split": "train", "frames": 3},
    settings={},
)

deep = "[" * 200_000 + "]" * 200_000


def about_file(folder: Path, **changed: Any) -> None:
    """A model.json, whole but for what is changed."""
    data = {**ABOUT.to_json(), "classes": list(CLASSES)} | changed
    (folder / ABOUT_FILE).write_text(json.dumps(data))


def listed(*classes: dict[str, Any]) -> dict[str, Any]:
    """A class list as a model.json has it."""
    return {"class_list": {"encoding": "colour", "classes": [*classes]}}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"format": 5}, "format 5; this version reads 4"),
        ({"format": 1}, "format 1; this version reads 4"),
        ({"height_px": 2**40}, "height_px: 1099511627776 cannot be"),
        ({"width_px": 97}, "width_px: 97 cannot be"),
        ({"step": True}, "step: True cannot be"),
        ({"workers": -1}, "workers: -1 cannot be"),
        ({"sha256": "../../etc/passwd"}, "sha256: '../../etc/passwd' cannot be"),
        ({"network": "x" * 129}, "network: "),
        ({"classes": [*CLASSES[:3], "\x1b]52;c;Zm9v\x07"]}, "classes: "),
        ({"classes": list(CLASSES[:3])}, "classes: are not the class_list's"),
        ({"classes": "Sky"}, "classes: 'Sky' cannot be"),
        ({"class_list": {"#000000": "Sky"}}, "class list: expected an encoding"),
        (listed({"key": "#000000", "name": "a" * 20_000}), "class list: the class of #000000 has"),
        (listed({"key": "k" * 20_000, "name": "a"}), "class list: 'kkk"),
        (listed({"key": "#000000", "name": "a", "k" * 20_000: 1}), "no such entry 'kkk"),
        (listed({"key": "#000000", "name": "a", "tag": "K" * 20_000}), "class list: a: tag 'KKK"),
        (listed(*({"key": f"#{n:06x}", "name": "a"} for n in range(5000))), "class_list: "),
        ({"dataset": {"name": "n", "id": ["i"], "split": "s"}}, r"dataset.id: \['i'\] cannot be"),
        ({"settings": []}, r"settings: \[\] cannot be"),
        ({"parent": "/etc"}, "parent: '/etc' cannot be"),
        ({"dir": "/etc"}, "'dir' is unknown"),
    ],
)
def test_what_a_model_says_of_itself(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    """Each wrong part of a model.json is named on one line, and nothing is made of it."""
    about_file(tmp_path)
    assert AboutModel.read(tmp_path) == ABOUT
    about_file(tmp_path, **changed)
    with pytest.raises(BadFile, match=said) as caught:
        AboutModel.read(tmp_path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


@pytest.mark.parametrize(
    "content", [deep, '{"parent": ' + deep + "}", "{" * 10, "", "7", "\xff", " " * (5 << 20)]
)
def test_json_of_no_use(tmp_path: Path, content: str) -> None:
    """Nested, cut or enormous JSON is a damaged file, and no traceback."""
    (tmp_path / ABOUT_FILE).write_text(content, encoding="latin-1")
    with pytest.raises(BadFile):
        AboutModel.read(tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 2}\n' + content + "\n")
    assert len(read_metrics(tmp_path)) == 1
    assert read_json(tmp_path / ABOUT_FILE) == {}


def test_metrics_are_numbers(tmp_path: Path) -> None:
    """The report draws lines of numbers; all else in a model's metrics.jsonl is left out."""
    lines = [
        '{"step": 1, "loss": 2.5}', '{"step": "<script>", "loss": 1}', '{"step": 2, "loss": NaN}',
        '{"step": 3, "loss": Infinity}', '{"step": 4, "loss": "x"}', '{"step": -5, "loss": 1}',
        '{"step": 1e999, "loss": 1}', "[1]", '{"loss": 1}', '{"step": true, "loss": 1}',
    ]  # fmt: skip
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    assert read_metrics(tmp_path) == [{"step": 1, "loss": 2.5}]


def test_links_pipes_and_devices(tmp_path: Path) -> None:
    """A file of a model lies in its folder: no link leads elsewhere, and no pipe is waited for."""
    outside, folder = tmp_path / "outside", tmp_path / "model"
    outside.mkdir()
    folder.mkdir()
    about_file(outside)
    checkpoint().write(outside)
    write_trained_frames(outside, ["a"], None)
    (outside / "metrics.jsonl").write_text('{"step": 1, "loss": 2}\n')
    os.mkfifo(tmp_path / "pipe")
    reads: dict[str, Callable[[], object]] = {
        ABOUT_FILE: lambda: AboutModel.read(folder),
        CHECKPOINT_FILE: lambda: Checkpoint.read(folder),
        FILE: lambda: write_trained_frames(tmp_path / "new", ["b"], folder),
    }
    for name, read in reads.items():
        for target in (outside / name, tmp_path / "pipe", Path("/dev/zero"), tmp_path):
            (folder / name).symlink_to(target)
            with pytest.raises(BadFile, match=r"link that leads out of|regular file|directory"):
                read()
            (folder / name).unlink()
    (folder / "metrics.jsonl").symlink_to(outside / "metrics.jsonl")
    assert read_metrics(folder) == []
    # A folder that is a link itself is a folder.
    (tmp_path / "linked").symlink_to(outside)
    assert AboutModel.read(tmp_path / "linked") == ABOUT
    assert Checkpoint.read(tmp_path / "linked") is not None


def _array(shape: str, descr: str = "'<f4'") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 64


@pytest.mark.parametrize(
    ("array", "compressed"),
    [
        (_array("(1000000000000,)"), False),
        (_array("(-1,)"), False),
        (_array("(4, 4)", "'|O'"), False),
        (_array("(4, 4)", "'|V0'"), False),
        (_array("(4, 4)", "'<f4', __import__('os')"), False),
        (b"\x93NUMPY\x09\x00", False),
        (_array("(16,)"), True),
    ],
)
def test_checkpoints_that_lie(tmp_path: Path, array: bytes, compressed: bool) -> None:
    """An array that says to be large, to hold objects, or that inflates, is not made."""
    checkpoint().write(tmp_path)
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(tmp_path / CHECKPOINT_FILE, "a") as archive:
        archive.writestr("weight_9999.npy", array, kind)
    with pytest.raises(BadFile, match="checkpoint is damaged"):
        Checkpoint.read(tmp_path)


def test_trained_frames_that_are_none(tmp_path: Path) -> None:
    """Another table in their place is refused before its columns are decoded."""
    pq.write_table(pa.table({"fkey": pa.array([[1]] * 3)}), tmp_path / FILE)
    with pytest.raises(BadFile, match="is no list of fkeys"):
        write_trained_frames(tmp_path / "new", ["a"], tmp_path)


def test_a_server_is_asked_for_no_foreign_model(tmp_path: Path) -> None:
    """The command says so before anything is sent."""
    server = ("--server", "http://127.0.0.1:1")
    refused = framesift(tmp_path, *server, "validate", "theirs", "streets", "--trust-model")
    assert refused.returncode == 1
    assert "a server loads no foreign models" in refused.stderr


def test_rest_has_no_word_for_it(attacked: Server) -> None:
    """A field of the request that would trust a model is refused, and so is a folder's path."""
    body = {"kind": "validate", "dataset": "streets", "model": str(attacked.home)}
    with attacked.client("admin") as client:
        refused = client.post("/v1/jobs", json=body | {"trust_model": True})
        assert (refused.status_code, "trust_model" in refused.text) == (422, True)
        assert client.post("/v1/jobs", json=body).status_code == 404


@pytest.mark.parametrize("name", ["a" * 129, "\x1b[2J"])
def test_a_training_that_could_not_say_its_dataset(name: str) -> None:
    """It is refused before its first step, and not when it writes model.json."""
    ABOUT.check()
    with pytest.raises(InvalidInput, match="a model cannot be made of this dataset"):
        replace(ABOUT, dataset=dict(ABOUT.dataset) | {"split": name}).check()
