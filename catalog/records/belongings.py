"""What a home's records name besides the catalog: manifests of datasets, models and reports."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from catalog.records.datasets import recorded_datasets
from catalog.records.home_places import HomePlaces, below, names_in
from catalog.records.jobs import recorded_jobs
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from catalog.storage.s3_prefix import S3Prefix

MANIFEST_FILES = ("frames.parquet", "manifest.json")
"""The header last: with it a manifest is whole."""

MODEL_FILE = "model.json"
"""What a finished model's folder has."""


@dataclass(frozen=True)
class Kept:
    """Files that belong together.

    Attributes:
        folder: Where they lie in a home, such as "datasets/city/v1".
        place: Where they lie now.
        names: Their paths below it.
        is_model: Whether it is a finished model.
    """

    folder: str
    place: Path | S3Prefix
    names: tuple[str, ...]
    is_model: bool = False

    @property
    def team_folder(self) -> str:
        """Where they lie beside a team's data: a manifest where it does in a home, and a model."""
        folder, _, rest = self.folder.partition("/")
        return self.folder if folder == "datasets" else f"models/{rest.removesuffix('/model')}"


@dataclass(frozen=True)
class Belongings:
    """What was found.

    Attributes:
        datasets: The manifest of each dataset, by "name@version".
        jobs: Models and reports of jobs.
        missing: Datasets without a manifest, "name@version".
    """

    datasets: Mapping[str, Kept]
    jobs: tuple[Kept, ...]
    missing: tuple[str, ...]

    @classmethod
    def of(cls, records: RecordStore) -> "Belongings":
        """Those of some records; none where it is not known which home they are of.

        Raises:
            StorageError: S3 does not answer.
        """
        places = records.places
        if places is None:
            return cls({}, (), ())
        datasets, missing = {}, []
        for dataset in recorded_datasets(records):
            name = f"{dataset.name}@{dataset.version}"
            kept = manifest_of(places, dataset)
            if kept is None:
                missing.append(name)
            else:
                datasets[name] = kept
        found = []
        for job in recorded_jobs(records):
            folder = Path(job.paths.get("folder", ""))
            if folder != places.home / "jobs" / job.name:
                continue
            for part in ("model", "report"):
                names = tuple(names_in(folder / part))
                if names:
                    whole = part == "model" and MODEL_FILE in names
                    found.append(Kept(f"jobs/{job.name}/{part}", folder / part, names, whole))
        return cls(datasets, tuple(found), tuple(missing))


def manifest_of(places: HomePlaces, dataset: Dataset) -> Kept | None:
    """A dataset's manifest, where there is one."""
    folder = f"{dataset.name}/v{dataset.version}"
    for place in manifest_places(places, dataset):
        if isinstance(place, Path):
            there = all((place / name).is_file() for name in MANIFEST_FILES)
        else:
            there = set(MANIFEST_FILES) <= set(names_in(place))
        if there:
            return Kept(f"datasets/{folder}", place, MANIFEST_FILES)
    return None


def manifest_places(places: HomePlaces, dataset: Dataset) -> list[Path | S3Prefix]:
    """Where a dataset's manifest may lie: where it is recorded, where datasets lie, in the home."""
    own = own_place(places, dataset.name, dataset.version)
    in_home = places.home / "datasets" / dataset.name / f"v{dataset.version}"
    recorded = Path(dataset.manifest)
    return list(dict.fromkeys([*([recorded] if recorded.is_absolute() else []), own, in_home]))


def own_place(places: HomePlaces, name: str, version: int) -> Path | S3Prefix:
    """Where the manifest of a new dataset goes."""
    return below(below(places.datasets, name), f"v{version}")
