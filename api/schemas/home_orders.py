"""Orders for jobs that are the home's own work: a staging, a scan, a check of labels...

A request's body and a command line each make one; the record of a server's job keeps it, and the
job's process does it. Each setting is one field here, as in pipeline.runs.orders.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, ClassVar

from ingest.scan.removal_guard import MOST_REMOVED
from pipeline.afm.target import TARGET
from pipeline.runs.setting import Setting
from pipeline.staging.workers import MOST_WORKERS

_SOURCE = Setting(help="The source.", examples=("a2d2",))


@dataclass(frozen=True, kw_only=True)
class HomeOrder:
    """Order for a job that is the home's own work."""

    kind: ClassVar[str]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the job's record shows."""
        return {name: value for name, value in asdict(self).items() if value not in (None, (), [])}

    def as_json(self) -> dict[str, Any]:
        """Every field: `home_order_of` reads it."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class Staging(HomeOrder):
    """A dataset to be staged."""

    kind: ClassVar[str] = "stage"

    dataset: Annotated[str, Setting(help="NAME, or NAME@VERSION.", examples=("bikes@1",))]
    workers: Annotated[int, Setting(help="Files fetched at once.", ge=1, le=MOST_WORKERS)] = 4
    verify: Annotated[
        bool,
        Setting(
            help="Read what is in the cache again; fetch what is damaged.",
            body="Read what is in the cache again, and fetch what is damaged.",
            option="--verify",
        ),
    ] = False
    prepare: Annotated[
        str | None,
        Setting(
            help="Also decode the frames once, at a training's input size, or at their own (full).",
            body="Also decode the frames once, at this size: WIDTHxHEIGHT in pixels, or full for "
            "each frame's own.",
            max_length=9,
            examples=("240x152",),
            metavar="WIDTHxHEIGHT|full",
        ),
    ] = None
    to: Annotated[
        Sequence[str],
        Setting(
            help="Have AFM bring the files into this fileset, in place of the cache; repeatable.",
            body=f"AFM filesets to bring the files into, in place of the cache: {TARGET}.",
            max_length=100,
            examples=(["afm:ess3000_4M/a2d2_cos"],),
            metavar=TARGET,
        ),
    ] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """As of every order, but the dataset, which the record has, and what is not asked for."""
        chosen = {name: value for name, value in super().settings.items() if value is not False}
        del chosen["dataset"]
        return chosen


@dataclass(frozen=True, kw_only=True)
class Scan(HomeOrder):
    """A scan to be made."""

    kind: ClassVar[str] = "scan"

    source: Annotated[str, _SOURCE]
    full: Annotated[
        bool, Setting(help="Count all labels again, changed or not.", option="--full")
    ] = False
    max_removed: Annotated[
        float,
        Setting(
            help="Share of the source's catalogued files that may be removed at once; where more "
            "are gone, none is. With 1 all may.",
            body="Share of the source's catalogued files that may be removed at once; where more "
            "are gone, none is, and the job fails. With 1 all may.",
            ge=0,
            le=1,
            examples=(0.05,),
        ),
    ] = MOST_REMOVED
    check_images: Annotated[
        bool,
        Setting(
            help="Open each camera image to see that it is whole and fits its label.",
            option="--check-images/--no-check-images",
        ),
    ] = True
    errors: Annotated[
        bool, Setting(help="Only list what is wrong with its files.", option="--errors")
    ] = False
    folders: Annotated[
        Sequence[str],
        Setting(
            help="Look only at this folder of the source; repeatable.", body="", option="--folder"
        ),
    ] = ()
    flat_folders: Annotated[
        Sequence[str],
        Setting(help="The same, without the folders in it.", body="", option="--flat-folder"),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class Extraction(HomeOrder):
    """Tags to be read."""

    kind: ClassVar[str] = "extract"

    source: Annotated[str, _SOURCE]
    extractors: Annotated[
        Sequence[str],
        Setting(
            help="Such as bus or image.",
            body="Of those that are installed on the server.",
            max_length=100,
            examples=(["image", "bus"],),
            metavar="EXTRACTOR...",
        ),
    ]
    own: Annotated[
        Sequence[str],
        Setting(
            help="FILE.py:CLASS, an extractor of your own; repeatable.",
            body="",
            option="--extractor",
        ),
    ] = ()
    full: Annotated[
        bool, Setting(help="Also read frames that were read before.", option="--full")
    ] = False
    workers: Annotated[int, Setting(help="Frames read at once.", ge=1, largest=64)] = 2
    errors: Annotated[bool, Setting(help="Only list the bad files.", option="--errors")] = False


@dataclass(frozen=True, kw_only=True)
class LabelCheck(HomeOrder):
    """Labels of a source to be looked at."""

    kind: ClassVar[str] = "labels"

    source: Annotated[str, replace(_SOURCE, help="The source; it has been scanned.")]
    labels: Annotated[
        int | None,
        Setting(
            help="Read so many, spread over all; all by default.",
            option="--labels",
            ge=1,
            examples=(500,),
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class PolicyRun(HomeOrder):
    """A run of a policy, which was begun, to be done."""

    kind: ClassVar[str] = "policy"

    policy: Annotated[str, Setting(help="The policy.")]
    run: Annotated[
        str, Setting(help="Continue this run; a new one by default.", option="--run")
    ] = ""

    @property
    def settings(self) -> dict[str, Any]:
        """The policy."""
        return {"policy": self.policy}


_ORDERS = {order.kind: order for order in (Staging, Scan, Extraction, LabelCheck, PolicyRun)}


def home_order_of(data: Mapping[str, Any]) -> HomeOrder:
    """The order that `HomeOrder.as_json` gave."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in data.items()
        if name != "kind"
    }
    return _ORDERS[data["kind"]](**values)
