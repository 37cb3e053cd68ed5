"""Chooses the network of an ONNX file that a job validates or predicts with."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from catalog.errors import BadFile, FramesiftError, InvalidInput, NotFound
from catalog.records.datasets import datasets_by_id
from catalog.records.jobs import recorded_job
from catalog.records.store import RecordStore
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json
from pipeline.jobs.inference.trained_on import trained_flags, trained_split
from pipeline.jobs.program.paths import USUAL_ONNX, ProgramPaths
from pipeline.jobs.request import PYTHON, JobPaths, Stage
from pipeline.manifest import ManifestHeader
from pipeline.runs.class_map import ClassMap, chosen_classes
from pipeline.runs.onnx_file import ENDING, OnnxFile, read_onnx
from pipeline.runs.onnx_model import ONNX_MODEL_FILE, OnnxModel, onnx_contract
from pipeline.runs.orders import ModelOrder
from pipeline.runs.prediction_set import check_model_name

Below = Literal["onnx", "compared_onnx"]
"""Folder of a job for the network that it scores, or for the one that it compares with."""

_IN_METADATA = ("version", "commit")
"""Entries of a file's metadata that reports show, besides what users say."""


@dataclass(frozen=True)
class ChosenOnnx:
    """The network of an ONNX file, as a job was asked for it: like a ChosenModel."""

    model: OnnxModel
    """The network."""
    below: Below
    """Folder of the job in which it is described."""
    trained: tuple[str, str] | None = None
    """Manifest and split that it was trained on; None where nobody said."""
    trained_on: str | None = None
    """The dataset of that, NAME@VERSION."""
    network: None = None
    """Of no code."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.model

    def folder_in(self, paths: JobPaths) -> Path:
        """The folder of its description: reports call the model by its name."""
        return paths.folder / self.below / self.model.model

    def check(self, paths: JobPaths) -> tuple[str, ...]:
        """The command that runs it once, before any frame is read."""
        return (
            PYTHON, "-P", "-m", "training.check_onnx", "--model_dir", str(self.folder_in(paths)),
            *trained_flags(self.trained),
        )  # fmt: skip

    def write(self, paths: JobPaths) -> None:
        """Write its description, which the job's programs read."""
        content = json.dumps(self.model.as_json(), indent=2)
        atomic_write(self.folder_in(paths) / ONNX_MODEL_FILE, content, parents=True)

    def description(self) -> Mapping[str, Any]:
        """What a model's description has, too."""
        return {"classes": list(self.model.classes), "class_map": self.model.class_map}

    def class_map(self) -> ClassMap | None:
        """By which it merges label classes; None where each is a class."""
        return None if self.model.class_map is None else ClassMap.from_json(self.model.class_map)


def is_onnx(records: RecordStore, model: str) -> bool:
    """Whether a model that an order names is an ONNX file, or a job of a program that wrote one."""
    if Path(model).is_absolute() or not model:
        return model.lower().endswith(ENDING)
    try:
        return recorded_job(records, _job_and_file(model)[0]).kind == "run"
    except NotFound:
        return model.lower().endswith(ENDING)


def onnx_path(records: RecordStore, model: str) -> tuple[Path, str]:
    """The ONNX file that is named, and what it is called: a file, or a program's job.

    A job is its file model.onnx, or the one that there is; JOB/FILE names one of several.

    Raises:
        NotFound: There is none.
        InvalidInput: There are several.
    """
    if Path(model).is_absolute():
        return Path(model), Path(model).stem
    job_name, file = _job_and_file(model)
    try:
        job = recorded_job(records, job_name)
    except NotFound as error:
        raise NotFound(
            "model", model, "expected an ONNX file, or the job of a program that wrote one"
        ) from error
    paths = ProgramPaths(Path(job.paths["folder"]))
    folder = paths.output
    path = folder / (file or _written(paths, job_name, model))
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise NotFound("model", model, f"{path.name} leads out of what the job made")
    return path, f"{job_name}-{path.stem}" if file else job_name


def _written(paths: ProgramPaths, job: str, model: str) -> str:
    """The name of the ONNX file that a job's program wrote.

    Raises:
        InvalidInput: There is none, or several and none is model.onnx.
    """
    file = paths.onnx_file
    if file is None:
        written = paths.onnx_files
        words = f"has {', '.join(written[:8])}" if written else "wrote no ONNX file"
        raise InvalidInput(
            f"model {model}: its program {words}; expected {USUAL_ONNX} in its folder "
            f"{paths.output}, or name one: {job}/FILE{ENDING}"
        )
    return file


def _job_and_file(model: str) -> tuple[str, str]:
    job, _, file = model.partition("/")
    return job, file


def chosen_onnx(
    records: RecordStore,
    order: ModelOrder,
    header: ManifestHeader,
    model: str,
    below: Below = "onnx",
) -> ChosenOnnx:
    """The network of an ONNX file, for a dataset's frames.

    Args:
        records: The records.
        order: Says what the file does not.
        header: Of the dataset.
        model: The file, or the job of the program that wrote it.
        below: Where it is described.

    Raises:
        NotFound: There is no such file, or what it was trained on is gone.
        BadFile: It cannot be run on frames of cameras.
        InvalidInput: It contradicts the order, or its classes are not the dataset's.
        UnknownName: There is no such class map.
    """
    path, usual_name = onnx_path(records, model)
    file = read_onnx(path)
    class_map, classes = _classes(file, order, header)
    image, output = onnx_contract(file, order.onnx or {}, len(classes))
    trained_on = order.trained_on or _trained_by(records, model)
    described = OnnxModel(
        model=_name(file, order, usual_name),
        file=str(path),
        sha256=file.sha256,
        producer=file.producer,
        version=file.model_version,
        opset=file.opset,
        data_files=file.data_files,
        input=image,
        output=output,
        classes=classes,
        class_map=None if class_map is None else class_map.as_json(),
        info={
            **{name: file.metadata[name][:512] for name in _IN_METADATA if name in file.metadata},
            **(order.model_info or {}),
        },
    )
    return ChosenOnnx(described, below, trained_split(records, trained_on), trained_on)


def _name(file: OnnxFile, order: ModelOrder, usual: str) -> str:
    """The name: that its user gives, the file's metadata, or the file's or job's own.

    Raises:
        InvalidInput: It cannot be one.
    """
    name = order.model_name or file.metadata.get("name") or usual
    try:
        check_model_name(name)
    except InvalidInput as error:
        raise InvalidInput(f"{error}; give --model-name") from error
    return name


def _classes(
    file: OnnxFile, order: ModelOrder, header: ManifestHeader
) -> tuple[ClassMap | None, tuple[str, ...]]:
    """The class map and the classes of a network: its user's word, or its metadata's.

    Raises:
        BadFile: Its metadata are damaged.
        InvalidInput: They do not fit the dataset.
    """
    named = order.classes
    if named is None and (text := file.metadata.get("class_map")):
        named = text if not text.lstrip().startswith("{") else _json(file, "class_map", text)
    try:
        class_map = chosen_classes(named)
    except FramesiftError as error:
        if order.classes is not None:
            raise
        raise BadFile(f"its metadata class_map: {error}", str(file.path)) from error
    classes = header.dataset_classes
    if class_map is None:
        classes.need_same_classes(header.name)
        names = tuple(classes.learned)
    else:
        class_map.ids_in(classes, header.name)
        names = class_map.classes
    if order.classes is None and (text := file.metadata.get("classes")):
        own = _json(file, "classes", text) if text.lstrip().startswith("[") else text.split(",")
        own = [str(name).strip() for name in own]
        if own != [*names]:
            differing = [*sorted(set(own) ^ set(names))[:3]] or ["their order"]
            raise InvalidInput(
                f"{file.path}: its metadata name {len(own)} classes, and dataset {header.name} has "
                f"{len(names)}; they differ in {', '.join(map(ascii, differing))}: give --classes, "
                "a map whose classes are the network's in their order"
            )
    return class_map, names


def _json(file: OnnxFile, name: str, text: str) -> Any:
    try:
        return parsed_json(text.encode())
    except ValueError as error:
        raise BadFile(f"its metadata {name}: is no JSON: {error}", str(file.path)) from error


def _trained_by(records: RecordStore, model: str) -> str | None:
    """The dataset that the program read which wrote a file; None where none is known."""
    if Path(model).is_absolute():
        return None
    job = recorded_job(records, _job_and_file(model)[0])
    dataset = datasets_by_id(records, [job.dataset_id]).get(job.dataset_id or 0)
    if dataset is None or dataset.removed is not None or "train" not in dataset.splits:
        return None
    return f"{dataset.name}@{dataset.version}"


def check_stage(commands: Sequence[tuple[str, ...]]) -> tuple[Stage, ...]:
    """The stage that runs networks of ONNX files once; none for no commands."""
    return (Stage("check", tuple(commands), uses_gpus=False),) if commands else ()
