"""The options that say how a set is built and divided."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.options.question_options import QuestionOptions
from catalog.errors import InvalidInput, StorageError
from query.sets.min_gap import MIN_GAP_S

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from query.sets.methods import Method

_DATASET = "dataset:"


@dataclass(frozen=True)
class SetOptions:
    """Options that choose among the frames that answer the question; one method at most."""

    stratify: Annotated[
        str | None,
        typer.Option(help="With --sample: strata, such as camera,scene or car:0,1000,10000."),
    ] = None
    allocate: Annotated[
        str,
        typer.Option(help="proportional, equal, or shares: front_center=0.7,rear_center=0.3."),
    ] = "proportional"
    match: Annotated[
        str | None,
        typer.Option(help="JSON or CSV file of wanted shares, or dataset:NAME to be like it."),
    ] = None
    match_by: Annotated[
        str | None,
        typer.Option(help="With --match dataset:NAME: what to compare; camera and every class."),
    ] = None
    match_split: Annotated[
        str | None, typer.Option(help="With --match dataset:NAME: only this split of it.")
    ] = None
    frames: Annotated[int | None, typer.Option(help="With --match: how many frames.")] = None
    tolerance: Annotated[
        float, typer.Option(help="With --match: greatest deviation of a share, 0 to 1.")
    ] = 0.01
    cover: Annotated[
        list[str] | None,
        typer.Option(
            "--cover",
            help="As few frames as hold these: car=100, car:5000=100 (pixels), camera/car=100.",
        ),
    ] = None
    cover_where: Annotated[
        list[str] | None,
        typer.Option("--cover-where", help="The same of a condition: \"weather = 'fog'=30\"."),
    ] = None
    uncertain: Annotated[
        str | None,
        typer.Option(help="Tag whose highest values mark a model's least certain frames."),
    ] = None
    lowest: Annotated[
        bool, typer.Option("--lowest", help="With --uncertain: its lowest values are.")
    ] = False
    budget: Annotated[int | None, typer.Option(help="With --uncertain: how many frames.")] = None
    per_scene: Annotated[
        int | None, typer.Option(help="With --uncertain: at most this many of one scene.")
    ] = None
    pool: Annotated[
        float,
        typer.Option(help="With --uncertain: spread out among so many times the budget."),
    ] = 5.0


SplitOption = Annotated[str | None, typer.Option(help="Shares, such as train=0.8,validation=0.2.")]


@dataclass(frozen=True)
class ApartOptions:
    """Options that keep sides apart."""

    min_gap_s: Annotated[
        float, typer.Option(help="Frames nearer in time stay on one side [s].")
    ] = MIN_GAP_S
    allow_leakage: Annotated[
        bool,
        typer.Option("--allow-leakage", help="Sides may share scenes, drives and moments."),
    ] = False


@dataclass(frozen=True)
class DivisionOptions(ApartOptions):
    """Options that divide frames into splits."""

    split_by: Annotated[
        str, typer.Option(help="What stays on one side: scene, camera, any tag, or frame.")
    ] = "scene"
    stratify_splits: Annotated[
        str | None, typer.Option(help="What every split has its share of: camera,car:0,1000.")
    ] = None


def division_of(options: DivisionOptions) -> dict[str, Any]:
    """The options that differ from their defaults, as a division's data."""
    from query.sets.stratifier import parse_stratifiers

    usual = asdict(DivisionOptions())
    division = {name: value for name, value in asdict(options).items() if value != usual[name]}
    if options.stratify_splits:
        stratifiers = parse_stratifiers(options.stratify_splits)
        division["stratify_splits"] = [one.to_text() for one in stratifiers]
    return division


def method_of(
    choice: SetOptions, options: QuestionOptions
) -> "tuple[Method | None, QuestionOptions]":
    """The method that the options name, if any, and the question's options without its part.

    Raises:
        InvalidInput: More than one, or a value that cannot be used.
    """
    from pydantic import TypeAdapter

    from query.question.wrong_value import input_errors
    from query.sets.as_written import parse_allocation, parse_demands
    from query.sets.methods import Method

    methods: list[dict[str, Any]] = []
    if choice.stratify is not None:
        methods.append(
            {
                "method": "sample",
                "frames": _needed(options.sample, "--stratify", "--sample"),
                "stratify": _stratifiers(choice.stratify),
                "allocation": parse_allocation(choice.allocate, "--allocate"),
            }
        )
        options = replace(options, sample=None)
    if choice.match is not None:
        number = _needed(choice.frames, "--match", "--frames")
        tolerance = choice.tolerance
        methods.append(
            {"method": "match", "frames": number, "tolerance": tolerance, **_target(choice)}
        )
    if choice.cover or choice.cover_where:
        methods.append(
            {
                "method": "cover",
                "demands": parse_demands(choice.cover or (), choice.cover_where or ()),
            }
        )
    if choice.uncertain is not None:
        methods.append(
            {
                "method": "uncertain",
                "tag": choice.uncertain,
                "frames": _needed(choice.budget, "--uncertain", "--budget"),
                "lowest": choice.lowest,
                "per_scene": choice.per_scene,
                "pool": choice.pool,
            }
        )
    if len(methods) > 1:
        names = ", ".join(str(one["method"]) for one in methods)
        raise InvalidInput(f"{names}: a set is built by one method; make one dataset of each")
    with input_errors():
        adapter: TypeAdapter[Method] = TypeAdapter(Method)
        return (adapter.validate_python(methods[0]) if methods else None), options


def _needed(value: int | None, option: str, missing: str) -> int:
    if value is None:
        raise InvalidInput(f"{option}: say with {missing} how many frames")
    return value


def _stratifiers(text: str) -> tuple[str, ...]:
    from query.sets.stratifier import parse_stratifiers

    return tuple(one.to_text() for one in parse_stratifiers(text))


def _target(options: SetOptions) -> dict[str, Any]:
    text = options.match or ""
    by = _stratifiers(options.match_by) if options.match_by else ()
    if text.startswith(_DATASET):
        return {"like": text.removeprefix(_DATASET), "like_split": options.match_split, "by": by}
    if by or options.match_split is not None:
        raise InvalidInput("--match-by and --match-split are for --match dataset:NAME")
    return {"targets": read_targets(Path(text))}


def read_targets(path: Path) -> dict[str, dict[str, Any]]:
    """Wanted shares from a file.

    JSON: ``{"camera": {"front_center": 0.7, "*": 0.3}}``. CSV, with this header line:
    ``tag,value,share``.

    Raises:
        StorageError: It cannot be read.
        InvalidInput: It is neither.
    """
    from query.sets.as_written import parse_targets

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be read: {error.strerror}; expected a JSON or CSV file of shares, or "
            "dataset:NAME",
            str(path),
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: is no text: expected JSON or CSV") from error
    return parse_targets(text, str(path), is_csv=path.suffix.lower() == ".csv")
