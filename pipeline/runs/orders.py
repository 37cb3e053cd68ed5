"""Orders for jobs that read a dataset: what a user asks for, as values.

A request's body, a command line, a form of the page and a trigger's step each make one; the job's
record keeps it. Each setting is one field here: its words and bounds are said in no other place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from catalog.errors import InvalidInput
from pipeline.runs.augmentations import (
    AUGMENTATIONS,
    NONE,
    USUAL,
    augmentations_in,
    checked_augmentations,
)
from pipeline.runs.bad_frames import FAIL, check_bad_frames
from pipeline.runs.class_map import ALL, chosen_classes, classes_in
from pipeline.runs.exchange import Exchange, exchange_in
from pipeline.runs.job_order import (
    ATTEMPTS_ROW,
    MOST_RANKS,
    RANKS_ROW,
    JobOrder,
    absolute_path,
    check_absolute,
    order_in,
)
from pipeline.runs.networks import NETWORKS, SMALL_UNET, check_backbone, check_network
from pipeline.runs.onnx_file import ENDING
from pipeline.runs.onnx_model import KEYS as ONNX_KEYS
from pipeline.runs.onnx_model import check_onnx, onnx_in
from pipeline.runs.precision import AUTO, PRECISIONS, check_precision
from pipeline.runs.prediction_set import (
    BY_NAME,
    IDS,
    MOST_INFO,
    check_encoding,
    check_info,
    check_model_name,
    check_named_by,
    check_place,
    encoding_in,
    info_in,
    job_or_folder,
    named_by_in,
    place_in,
)
from pipeline.runs.score_thresholds import parse_thresholds
from pipeline.runs.setting import Setting, rows
from pipeline.runs.size import LONGEST_SIDE_PX, form_size
from pipeline.runs.training_input import SIZE_STEP_PX, USUAL_SIZE

_LONGEST_SIDE_PX = 65_535


def _percent(text: str) -> float:
    """The number of a share such as 5% or 5."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise InvalidInput(f"--start-after {text}: expected 0% to 100%")
    return percent


def _start_after(words: str) -> Setting:
    """The row of a share, with a place for its form in its words."""
    return Setting(
        help=words.format(", such as 5%"),
        body=words.format(" [percent]"),
        ge=0,
        le=100,
        unit="percent",
        examples=(5,),
        option="--start-after",
        metavar="PERCENT",
        parse=_percent,
    )


def _bad_frames(lists: str, flag: str = "") -> Setting:
    return Setting(
        help="Frames that cannot be read: fail (default); leave out one percent, or N, at most.",
        body="What becomes of frames that cannot be read: fail, by default; skip, one percent of "
        f"them at most; or skip:N, so many at most. {lists}",
        flag=flag,
        max_length=32,
        examples=("skip",),
        metavar="fail|skip|skip:N",
        usual=FAIL,
    )


_TRUST = Setting(
    help="Build a foreign network, of model.keras or the MODULE:FUNCTION that model.json names; "
    "this runs its author's code.",
    body="",
    option="--trust-model",
)
_MODEL = Setting(
    help="A training job's name, or a model folder; with @STEP a checkpoint, with @best the best "
    "one. Or an ONNX file, or the job of a program that wrote model.onnx.",
    body="Name of a training job; with @STEP its checkpoint of then, with @best the best model "
    "that its evaluate_every found. Or of a job of kind run that wrote model.onnx.",
    examples=("train-bikes-7",),
    metavar="MODEL",
)


PREPARE = Setting(
    help="First decode the frames of a staged dataset once; by default where that is less "
    "work than decoding all that the training reads.",
    body="Whether the job first decodes the frames of a staged dataset once, at the "
    "network's input size; by default where that is less work than decoding all that it "
    "reads.",
    examples=(True,),
    option="--prepare/--no-prepare",
    after="continue_from",
)
STAGE = Setting(
    help="Read the files where their sources are mounted (source set --mount), without a copy.",
    body="Whether it reads what is staged; else its files where its sources are mounted, "
    "without any copy.",
    option="--no-stage",
)
_SHARDS = Setting(help="Shards, each a process.", body="Processes.", ge=1, largest=MOST_RANKS)


@dataclass(frozen=True, kw_only=True)
class FramesOrder(JobOrder):
    """The order for a job on a dataset, or on the frames that answer a question."""

    is_of_model: ClassVar[bool] = False
    """Whether it puts frames through a model that was trained."""

    dataset: str | None = None
    """NAME, or NAME@VERSION; None where a question chooses the frames."""
    question: Mapping[str, Any] | None = None
    """A question as JSON (query.question.question); None for none."""
    divide: Mapping[str, Any] | None = None
    """The division of the question's frames, as JSON of a new split; None for none."""
    save_as: Annotated[
        str | None,
        Setting(
            help="The dataset that chosen frames become; by default the job's name, or "
            "predict-MODEL.",
            body="Name of the question's dataset; the job's by default, and predict-MODEL of a "
            "prediction.",
            metavar="NAME",
        ),
    ] = None

    @property
    def saves_as(self) -> str | None:
        """Name of the dataset that a question's frames become; None for the job's own."""
        return self.save_as

    def check(self) -> None:
        """Accept settings that can be, as far as they themselves say.

        Raises:
            InvalidInput: One is out of range, or two do not go together.
            UnknownName: One is a name of nothing.
        """
        if (self.dataset is None) == (self.question is None):
            raise InvalidInput(
                f"{self.kind}: give a dataset, or the question of a selection; and not both"
            )
        if self.question is None and self.save_as is not None:
            raise InvalidInput(
                f"save as {self.save_as}: goes with a question, and not with a dataset"
            )
        if self.question is None and self.divide is not None:
            raise InvalidInput(
                "divide: goes with a question; framesift dataset split divides a dataset again"
            )
        super().check()

    def on(self, dataset: str) -> Self:
        """The same order on a dataset, such as what the question's frames were saved as."""
        return replace(self, dataset=dataset, question=None, divide=None, save_as=None)


@dataclass(frozen=True, kw_only=True)
class Order(FramesOrder):
    """The order for a job that reads its frames itself, once they are staged."""

    evict: Annotated[
        bool,
        Setting(help="Remove the dataset from the cache when the job is done.", option="--evict"),
    ] = False
    migrate: Annotated[
        bool,
        Setting(
            help="Have the dataset's files migrated back to tape when the job is done.",
            body="Have the dataset's files migrated back to tape when the job is done, by "
            "FRAMESIFT_MIGRATE_COMMAND; what another job reads stays.",
            option="--migrate",
        ),
    ] = False
    stage: Annotated[
        bool,
        STAGE,
    ] = True
    start_after: Annotated[
        float | None,
        _start_after(
            "Stage what is not staged beside the job, and begin when so much of the split is in "
            "the cache{}; at once by default, where it cannot be read otherwise."
        ),
    ] = None

    @property
    def afterwards(self) -> tuple[str, ...]:
        """The steps that follow when the job is done."""
        return tuple(step for step in ("evict", "migrate") if getattr(self, step))

    def check(self) -> None:
        """As of every order; what is staged is evicted, and awaited."""
        if self.evict and not self.stage:
            raise InvalidInput("evict: goes with staging, and nothing is staged; leave one out")
        if self.start_after is not None and not self.stage:
            raise InvalidInput(
                f"start after {self.start_after:g} percent: goes with staging, and nothing is "
                "staged; leave one out"
            )
        super().check()


@dataclass(frozen=True, kw_only=True)
class NetworkOrder(Order):
    """The order for a job that puts frames through a network."""

    workers: int = 2
    split: str | None = None
    bad_frames: str | None = None

    @property
    def processes(self) -> int:
        """Its workers."""
        return self.workers


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Settings of a training that are flags of the training program, too."""

    batch_size: Annotated[
        int,
        Setting(
            help="Frames per worker and step.",
            flag="frames per step and worker (4)",
            mode="train",
            ge=1,
        ),
    ] = 4
    max_steps: Annotated[
        int | None,
        Setting(
            help="Steps; 300 by default, or one epoch where that is more.",
            flag="steps in all (300, or an epoch if more)",
            mode="train",
            ge=1,
        ),
    ] = None
    epochs: Annotated[
        int | None,
        Setting(
            help="Length in epochs, instead of steps.",
            body="The length in epochs, instead of max_steps.",
            flag="the length in epochs instead of steps",
            mode="train",
            ge=1,
        ),
    ] = None
    learning_rate: Annotated[
        float | None,
        Setting(
            help="Of one worker; 0.002 by default.",
            flag="of one worker (0.002)",
            mode="train",
            gt=0,
            usual=0.002,
        ),
    ] = None
    height: Annotated[
        int | None,
        Setting(
            help="Network input height [pixels], divisible by 8; by default "
            f"{USUAL_SIZE.height_px}.",
            body="Network input [pixels].",
            flag=f"network input, pixels ({USUAL_SIZE.height_px})",
            mode="train",
            ge=1,
            largest=_LONGEST_SIDE_PX,
            ranged=False,
            usual=USUAL_SIZE.height_px,
        ),
    ] = None
    width: Annotated[
        int | None,
        Setting(
            help=f"Network input width, likewise; by default {USUAL_SIZE.width_px}.",
            body="Network input [pixels].",
            flag=f"network input, pixels ({USUAL_SIZE.width_px})",
            mode="train",
            ge=1,
            largest=_LONGEST_SIDE_PX,
            ranged=False,
            usual=USUAL_SIZE.width_px,
        ),
    ] = None
    seed: Annotated[
        int,
        Setting(
            help="Seed of weights and order.",
            flag="of weights and order of frames (0)",
            mode="train",
            ge=0,
            ranged=False,
        ),
    ] = 0
    split: Annotated[
        str | None,
        Setting(
            help="Split to train on; train, or all frames of a dataset not divided.",
            body="Split to train on; train, or all frames of a dataset that is not divided.",
            flag='default: "train" to train, otherwise "validation"; all if not divided',
        ),
    ] = None
    continue_from: Annotated[
        str | Path | None,
        Setting(
            help="Begin with the weights of a model: a training job's name, with @STEP or @best "
            "too, or a folder.",
            body="Name of a training job, with @STEP or @best too: begin a new run with the "
            "weights of its model.",
            flag="folder of a model to begin with",
            mode="train",
        ),
    ] = None
    classes: Annotated[
        str | Mapping[str, Any] | None,
        Setting(
            help="What the network learns: all label classes (default), a set of merged ones, or "
            "your own map in a JSON file.",
            body='What the network learns: "all" label classes, "a2d2-8", "cityscapes-19", or your '
            "own map, which merges each label class of the dataset into a class, or ignores it.",
            flag="all (default), a2d2-8, cityscapes-19, or a JSON file of merged classes",
            mode="train",
            examples=({"classes": {"Vehicle": ["Car", "Truck"]}, "ignored": ["Ego car"]},),
            metavar="all|a2d2-8|cityscapes-19|FILE",
            parse=classes_in,
            usual=ALL,
        ),
    ] = None
    augment: Annotated[
        Sequence[str] | None,
        Setting(
            help="Done to examples after reading: mirror (default), crop, scale, colour; or none.",
            body="What is done to examples after reading; mirror by default, empty for nothing.",
            flag=f"{','.join(AUGMENTATIONS)}, some of them, or {NONE} (mirror)",
            mode="train",
            max_length=4,
            examples=(["mirror", "crop", "scale", "colour"],),
            metavar="LIST|none",
            parse=augmentations_in,
            usual=USUAL,
        ),
    ] = None
    evaluate_every: Annotated[
        int | None,
        Setting(
            help="Score another split after each so many epochs, and keep the best model: "
            "validate NAME@best.",
            body="Interval in epochs at which evaluate_split is scored, and the best model kept: "
            "it can be validated as NAME@best.",
            flag="epochs (1)",
            mode="train_and_evaluate",
            ge=1,
            metavar="EPOCHS",
            usual=1,
        ),
    ] = None
    evaluate_split: Annotated[
        str | None,
        Setting(
            help="The split that --evaluate-every scores (validation).",
            body="Split that evaluate_every scores; validation by default.",
            flag="split to score (validation)",
            mode="train_and_evaluate",
            metavar="NAME",
            usual="validation",
        ),
    ] = None
    bad_frames: Annotated[
        str | None,
        _bad_frames(
            "The model's folder lists them.", "fail (default), skip, or skip:N frames at most"
        ),
    ] = None
    target_miou: Annotated[
        float | None,
        Setting(
            help="Take the time until --evaluate-every finds this mean IoU, above 0 to 1.",
            body="Mean IoU whose time is taken, by evaluate_every: metric seconds_to_target.",
            flag="mean IoU, above 0 to 1, to time",
            mode="train_and_evaluate",
            gt=0,
            le=1,
        ),
    ] = None
    horovod: Annotated[
        Mapping[str, Any] | None,
        Setting(
            help="How workers exchange gradients: fusion_mb, cycle_ms, compression=none|fp16, "
            "reduce=average; adasum needs MPI, which jobs do not start workers by.",
            body="How workers exchange gradients.",
            flag="fusion_mb=, cycle_ms=, compression=none|fp16, reduce=average|adasum",
            mode="train",
            examples=({"compression": "fp16", "fusion_mb": 32},),
            metavar="NAME=VALUE,...",
            parse=exchange_in,
        ),
    ] = None
    label_smoothing: Annotated[
        float,
        Setting(
            help="Share of a pixel's truth that is spread over all classes, 0 to 1.",
            flag="share of a pixel's truth spread over all classes (0)",
            mode="train",
            ge=0,
            le=1,
            examples=(0.1,),
        ),
    ] = 0.0
    checkpoint_every: Annotated[
        int | None,
        Setting(
            help="Steps between checkpoints; 100 by default.",
            flag="steps (100)",
            mode="train",
            ge=1,
            usual=100,
        ),
    ] = None
    checkpoint_minutes: Annotated[
        float | None,
        Setting(
            help="Minutes after which a checkpoint is due, too.",
            flag="minutes between them, too",
            mode="train",
            gt=0,
        ),
    ] = None
    keep_checkpoints: Annotated[
        int | None,
        Setting(
            help="Checkpoints kept, the newest among them (2): validate NAME@STEP.",
            body="Checkpoints kept, the newest among them; 2 by default. Each can be validated as "
            "NAME@STEP.",
            flag="the newest so many (2)",
            mode="train",
            ge=1,
            le=1000,
            usual=2,
        ),
    ] = None
    model: Annotated[
        str | None,
        Setting(
            help="Network: small_unet (default), deeplabv3plus_resnet50, or your own, "
            "MODULE:FUNCTION, of a module that is installed or on PYTHONPATH.",
            body="The network; small_unet by default.",
            flag=f"network: {', '.join(NETWORKS)}, or your own, MODULE:FUNCTION",
            usual=SMALL_UNET,
        ),
    ] = None
    backbone_weights: Annotated[
        str | Path | None,
        Setting(
            help="Weights of ResNet-50 to begin with, as Keras' .h5.",
            body="",
            flag=".h5 of ResNet-50's weights",
            mode="train",
            metavar="FILE",
            parse=absolute_path,
        ),
    ] = None
    precision: Annotated[
        str | None,
        Setting(
            help="What layers compute in: auto (default; halves on GPUs that gain by it), float32 "
            "or mixed_float16.",
            body="What layers compute in; weights, logits and loss are float32. By default auto: "
            "mixed_float16 on GPUs that gain by it, else float32.",
            flag=f"{', '.join(PRECISIONS)}; auto: mixed where a GPU gains by it",
            mode="train",
            usual=AUTO,
        ),
    ] = None


TRAINING_SETTINGS = ("workers", "prepare", *(row.name for row in rows(TrainingSettings)))
"""Settings of a training, as its record has them."""


@dataclass(frozen=True, kw_only=True)
class Training(TrainingSettings, NetworkOrder):
    """A network to be trained on a dataset's split."""

    kind: ClassVar[str] = "train"

    workers: Annotated[
        int,
        Setting(help="Horovod processes.", body="Processes.", ge=1, largest=MOST_RANKS, after=""),
    ] = 2
    prepare: Annotated[
        bool | None,
        PREPARE,
    ] = None

    def check(self) -> None:
        """As of every order; settings go together."""
        if self.max_steps is not None and self.epochs is not None:
            raise InvalidInput(
                f"max steps {self.max_steps} and epochs {self.epochs}: give one of them"
            )
        for side in ("height", "width"):
            _check_side(side, getattr(self, side))
        super().check()
        checked_augmentations(self.augment or ())
        check_bad_frames(self.bad_frames)
        if Exchange.of(self.horovod or {}).reduce == "adasum":
            raise InvalidInput(
                "horovod reduce=adasum: jobs start their workers by Gloo, and Adasum needs MPI: "
                "take reduce=average, or start training.main by mpirun"
            )
        if self.model is not None:
            check_network(self.model)
        check_backbone(self.model or SMALL_UNET, self.backbone_weights)
        check_precision(self.precision or AUTO)
        chosen_classes(self.classes)
        if self.evaluate_split is not None and self.evaluate_every is None:
            raise InvalidInput(
                f"evaluate split {self.evaluate_split}: give evaluate every, too, after how many "
                "epochs it is scored"
            )
        if self.target_miou is not None and self.evaluate_every is None:
            raise InvalidInput("target miou: give evaluate every, too, by which it is looked for")


@dataclass(frozen=True, kw_only=True)
class ModelOrder(NetworkOrder):
    """The order for a job that puts frames through a model that was trained."""

    is_of_model: ClassVar[bool] = True

    model: str
    """A training job's name, or of a command a folder; maybe with @STEP or @best; an ONNX file, or
    the job of a program that wrote one; empty where predictions are scored in its place.
    """
    trust_model: bool = False
    """Whether a foreign model may run what its author put into it."""
    onnx: Annotated[
        Mapping[str, str] | None,
        Setting(
            help="What an ONNX file does not say itself: size=WIDTHxHEIGHT, scale=1/255, "
            "mean=R/G/B, std=R/G/B, channels=bgr, layout=nhwc, output=NAME, kind=logits, "
            "probabilities or ids.",
            body="What an ONNX file does not say itself: size, scale, mean, std, channels, layout, "
            "output, kind.",
            max_length=len(ONNX_KEYS),
            examples=({"size": "480x304", "scale": "1/255", "mean": "0.5"},),
            metavar="NAME=VALUE,...",
            parse=onnx_in,
        ),
    ] = None
    model_name: str | None = None
    model_info: Mapping[str, str] | None = None
    classes: str | Mapping[str, Any] | None = None
    trained_on: str | None = None

    def check(self) -> None:
        """As of every order."""
        super().check()
        check_bad_frames(self.bad_frames)
        check_onnx(self.onnx or {})
        if self.model_name is not None:
            check_model_name(self.model_name)
        check_info(self.model_info or {})
        chosen_classes(self.classes)

    @property
    def of_other_models(self) -> tuple[str, ...]:
        """Settings that are given, and that trainings answer by themselves."""
        names = ("model_name", "model_info", "classes", "trained_on", "onnx")
        return tuple(name for name in names if getattr(self, name) is not None)


@dataclass(frozen=True, kw_only=True)
class Validation(ModelOrder):
    """A model to be validated on a dataset's split, or predictions that another program made."""

    kind: ClassVar[str] = "validate"

    model: Annotated[str, _MODEL] = ""
    workers: Annotated[int, _SHARDS] = 2
    split: Annotated[
        str | None,
        Setting(help="Split to validate on; validation, or all frames of a dataset not divided."),
    ] = None
    trust_model: Annotated[bool, _TRUST] = False
    fail_below: Annotated[
        Mapping[str, float] | None,
        Setting(
            help="Exit with 1 where a score is lower: miou=0.4,pedestrian=0.3 (a class: its IoU).",
            body="The least score by name: miou, frequency_weighted_iou, boundary_iou, "
            "pixel_accuracy, or a class's tag for its IoU. What was not reached stands in the "
            "job's metrics, as below.",
            max_length=512,
            examples=({"miou": 0.4, "pedestrian": 0.3},),
            metavar="NAME=SCORE,...",
            parse=parse_thresholds,
        ),
    ] = None
    compare: Annotated[
        str | None,
        Setting(
            help="Put the same frames through this model, too, and say where MODEL is worse; of a "
            "validation of predictions, score those.",
            body="Name of another training job, whose model is validated on the same frames, or of "
            "a validation of predictions, which are: the report's comparison says where this one "
            "is worse.",
            examples=("train-bikes-6",),
            metavar="MODEL2",
        ),
    ] = None
    slices: Annotated[
        Sequence[str],
        Setting(
            help="Score the parts of the split by this tag's values, too; repeatable. all: by each "
            "tag that has few.",
            body="Tags by whose values the report scores parts of the split, besides camera and "
            "scene: numbers with many values by four ranges; all for each tag that has few "
            "values.",
            examples=(["weather", "speed"],),
            metavar="TAG",
        ),
    ] = ()
    augment_test: Annotated[
        str | None,
        Setting(
            help="Put each image through the model mirrored, too: how many pixels change.",
            body="Put each image through the model mirrored, too: the report's disagreement says "
            "how many pixels get another class.",
            examples=("mirror",),
            metavar="mirror",
        ),
    ] = None
    bad_frames: Annotated[str | None, _bad_frames("The report names them.")] = None
    predictions: Annotated[
        str | None,
        Setting(
            help="Score these label images, which another program made, in the place of MODEL's "
            "predictions: a folder or .tar with one PNG a frame, or s3://bucket/prefix.",
            body="In the place of model: folder or .tar, on the server's machine or as "
            "s3://bucket/prefix, with one label image a frame that another program predicted.",
            max_length=4096,
            examples=("/srv/predictions/night-3",),
            metavar="DIR",
            parse=place_in,
        ),
    ] = None
    scores: Annotated[
        str | None,
        Setting(
            help="Score what an evaluation of your own wrote by framesift.data.Scores, in the "
            "place of MODEL's predictions: the name of its job of framesift run, or its folder.",
            body="In the place of model: what an evaluation wrote by framesift.data.Scores; the "
            "name of its job of kind run, or its folder on the server's machine.",
            max_length=4096,
            examples=("run-streets-1",),
            metavar="JOB|FOLDER",
            parse=job_or_folder,
        ),
    ] = None
    model_name: Annotated[
        str | None,
        Setting(
            help="Name of the model that made them, or of an ONNX file's: of its scores' tags, and "
            "in reports.",
            body="Name of the model that made the predictions, or of an ONNX file's: of its "
            "scores' tags, and in reports.",
            examples=("night-3",),
            metavar="NAME",
        ),
    ] = None
    model_info: Annotated[
        Mapping[str, str] | None,
        Setting(
            help="What else tells that model apart, and stands in the report: "
            "version=3,commit=4f2a91c.",
            body="What else tells that model apart, and stands in the report.",
            max_length=MOST_INFO,
            examples=({"version": "3", "commit": "4f2a91c"},),
            metavar="NAME=VALUE,...",
            parse=info_in,
        ),
    ] = None
    encoding: Annotated[
        str | Mapping[str, Any] | None,
        Setting(
            help="Of the predictions: ids, the dataset's class ids (default); labels, as its "
            "labels are; a layout's name, such as cityscapes-trainids; or the file of a class list "
            "or layout of their own.",
            body="Of the predictions: ids, the dataset's class ids (default); labels, as its "
            "labels are; a layout's name, such as cityscapes-trainids; or a class list of their "
            "own, with encoding and classes.",
            examples=("labels",),
            metavar="ids|labels|LAYOUT|FILE",
            parse=encoding_in,
            usual=IDS,
        ),
    ] = None
    named_by: Annotated[
        str | None,
        Setting(
            help="Names of the predictions: name, that of the camera image below its source, "
            "ending in .png (default); fkey; or a CSV file with the columns frame and prediction.",
            max_length=4096,
            examples=("fkey",),
            metavar="name|fkey|FILE",
            parse=named_by_in,
            usual=BY_NAME,
        ),
    ] = None
    classes: Annotated[
        str | Mapping[str, Any] | None,
        Setting(
            help="What that model learned: all label classes (default), a set of merged ones, or a "
            "map in a JSON file.",
            body='What that model learned: "all" label classes, "a2d2-8", "cityscapes-19", or a '
            "map of your own.",
            examples=("cityscapes-19",),
            metavar="all|a2d2-8|cityscapes-19|FILE",
            parse=classes_in,
            usual=ALL,
        ),
    ] = None

    trained_on: Annotated[
        str | None,
        Setting(
            help="The dataset whose split train that model was trained on: NAME, or NAME@VERSION. "
            "The report counts frames that it knows, and improve adds to it.",
            body="The dataset whose split train that model was trained on, NAME or NAME@VERSION: "
            "the report counts the frames that it knows, and an improvement adds to it.",
            examples=("streets@2",),
            metavar="DATASET",
        ),
    ] = None

    def check(self) -> None:
        """Accept what every order accepts, if it scores a model or predictions, and not both."""
        super().check()
        if self.augment_test not in (None, "mirror"):
            raise InvalidInput(f"augment test {self.augment_test}: expected mirror")
        if not self.scores_predictions:
            if not self.model:
                raise InvalidInput("validate: model is missing; give one, or predictions")
            of_predictions = ("encoding", "named_by")
            if settings := [name for name in of_predictions if getattr(self, name) is not None]:
                raise InvalidInput(f"{settings[0].replace('_', ' ')}: goes with predictions")
            return
        self._check_predictions()

    @property
    def scores_predictions(self) -> bool:
        """Whether it scores what another program predicted, and runs no network of its own."""
        return self.predictions is not None or self.scores is not None

    def _check_predictions(self) -> None:
        what = "scores" if self.predictions is None else "predictions"
        if self.predictions is not None and self.scores is not None:
            raise InvalidInput("predictions and scores: give one of the two")
        if self.model:
            raise InvalidInput(
                f"model {self.model}: goes without {what}, which are another model's; give "
                "one of the two"
            )
        if self.model_name is None:
            location = self.predictions or self.scores
            raise InvalidInput(
                f"{what} {location}: give model name, too, which reports and scores carry"
            )
        if self.augment_test is not None or self.trust_model or self.onnx is not None:
            raise InvalidInput(
                f"{what}: no network runs; leave out augment test, trust model and onnx"
            )
        if self.predictions is not None:
            check_place(self.predictions)
        elif setting := next((s for s in ("encoding", "named_by") if getattr(self, s)), None):
            raise InvalidInput(
                f"{setting.replace('_', ' ')}: goes with predictions; scores are class ids by fkey"
            )
        if self.encoding is not None:
            check_encoding(self.encoding)
        if self.named_by is not None:
            check_named_by(self.named_by)


@dataclass(frozen=True, kw_only=True)
class Prediction(ModelOrder):
    """A model that is to say what is in frames, with or without labels."""

    kind: ClassVar[str] = "predict"

    model: Annotated[str, _MODEL]
    workers: Annotated[int, _SHARDS] = 2
    split: Annotated[
        str | None,
        Setting(help="Of the dataset; validation, or all frames of a dataset not divided."),
    ] = None
    trust_model: Annotated[bool, _TRUST] = False
    bad_frames: Annotated[str | None, _bad_frames("The report names them.")] = None
    model_name: Annotated[
        str | None,
        Setting(
            help="Name of an ONNX file's model; the file's own name by default.",
            examples=("night-3",),
            metavar="NAME",
        ),
    ] = None
    classes: Annotated[
        str | Mapping[str, Any] | None,
        Setting(
            help="What an ONNX file's network learned: all label classes (default), a set of "
            "merged ones, or a map in a JSON file.",
            body='What an ONNX file\'s network learned: "all" label classes, "a2d2-8", '
            '"cityscapes-19", or a map of your own.',
            examples=("cityscapes-19",),
            metavar="all|a2d2-8|cityscapes-19|FILE",
            parse=classes_in,
            usual=ALL,
        ),
    ] = None

    @property
    def saves_as(self) -> str | None:
        """As of every order; predict-MODEL by default."""
        name = Path(self.model).name.replace("@", "-").removesuffix(ENDING)
        return self.save_as or f"predict-{name}"


@dataclass(frozen=True, kw_only=True)
class Program(Order):
    """A user's own program to be run on a dataset, where the server allows it."""

    kind: ClassVar[str] = "run"

    command: Annotated[
        str,
        Setting(
            help="Program and arguments, quoted as for a shell, which reads none of it. {files}, "
            "{files:SPLIT}, {classes}, {manifest}, {prepared}, {job} and {checkpoint} stand for "
            "paths.",
            body="Program and arguments, with spaces between and quoted as a POSIX shell's words "
            "are; no shell reads them. {files}, {files:SPLIT}, {classes}, {manifest}, "
            "{prepared}, {job} and {checkpoint} stand for paths.",
            max_length=65_536,
            examples=("python /srv/train_mine.py --list {files} --classes {classes} --out {job}",),
            metavar="COMMAND",
        ),
    ]
    ranks: Annotated[int, RANKS_ROW] = 1
    split: Annotated[
        str | None, Setting(help="Split whose frames it is given; all by default.")
    ] = None
    prepare: Annotated[
        str | None,
        Setting(
            help="Decode the frames once at this size, or at their own (full), for {prepared}.",
            body="Decode the frames once at this size, WIDTHxHEIGHT, or at their own, full, for "
            "{prepared}.",
            max_length=64,
            examples=("240x152",),
            metavar="WIDTHxHEIGHT|full",
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        Setting(
            help="A checkpoint of another job of framesift run, NAME@STEP, or NAME for its newest: "
            "{checkpoint} until the program names one of its own.",
            body="A checkpoint of another job of kind run, NAME@STEP, or NAME for its newest: "
            "{checkpoint} until the program names one of its own.",
            examples=("run-streets-1@1200",),
            metavar="NAME@STEP",
        ),
    ] = None
    folder: Annotated[
        str | None,
        Setting(
            help="Where it runs; here by default, and on a server in the folder of its outputs.",
            body="Where it runs on the server's machine; the folder of its outputs by default.",
            max_length=4096,
            examples=("/srv/trainings",),
            metavar="FOLDER",
        ),
    ] = None
    torchrun: Annotated[
        bool,
        Setting(
            help="Start the ranks by PyTorch's launcher, one on each machine: by the command's "
            "Python, where that is its first word, or the torchrun on PATH.",
            option="--torchrun",
        ),
    ] = False
    start_after: Annotated[
        float | None,
        _start_after(
            "Stage what is not staged beside the job, and begin when so much of the split is in "
            "the cache{}: framesift.data waits for the rest; when all of it is there by default."
        ),
    ] = None
    attempts: Annotated[int, ATTEMPTS_ROW] = 1

    @property
    def processes(self) -> int:
        """Its ranks."""
        return self.ranks

    def check(self) -> None:
        """As of every order; paths and sizes are some."""
        super().check()
        check_absolute("folder", self.folder)
        if self.prepare is not None:
            form_size(self.prepare)
            if self.start_after is not None:
                raise InvalidInput(
                    f"start after {self.start_after:g} percent: goes with files that the program "
                    "reads itself, and prepare decodes all of them first; leave one out"
                )


ORDERS: Mapping[str, type[Order]] = {
    order.kind: order for order in (Training, Validation, Prediction, Program)
}
"""Orders for jobs that read a dataset, and that a trigger may begin, by their kinds."""


def order_of(data: Mapping[str, Any]) -> Order:
    """The order that `Order.as_json` gave.

    Raises:
        UnknownName: There is no such kind, or no such setting.
        InvalidInput: A setting is missing.
    """
    return order_in(data, ORDERS)


def _check_side(side: str, pixels: int | None) -> None:
    if pixels is None or (1 <= pixels <= LONGEST_SIDE_PX and not pixels % SIZE_STEP_PX):
        return
    near = min(max(1, round(pixels / SIZE_STEP_PX)), LONGEST_SIDE_PX // SIZE_STEP_PX) * SIZE_STEP_PX
    raise InvalidInput(
        f"{side} {pixels}: expected a multiple of {SIZE_STEP_PX} up to {LONGEST_SIDE_PX:,} pixels, "
        f"such as {near:,}"
    )
