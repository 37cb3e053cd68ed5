"""Files that a home's records name besides the catalog: manifests, models and reports."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from catalog.records.datasets import recorded_datasets
from catalog.records.home_layout import HomeLayout, below, names_in
from catalog.records.jobs import recorded_jobs
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from catalog.storage.s3_prefix import S3Prefix

MANIFEST_FILES = ("frames.parquet", "manifest.json")
"""The header last: with it a manifest is whole."""

MODEL_FILE = "model.json"
"""File that only a finished model's folder has."""


@dataclass(frozen=True)
class Artifact:
    """Files that belong together."""

    folder: str
    """Where they lie in a home, such as "datasets/city/v1"."""
    location: Path | S3Prefix
    """Where they lie now."""
    names: tuple[str, ...]
    """Their paths below it."""
    is_model: bool = False
    """Whether it is a finished model."""

    @property
    def team_folder(self) -> str:
        """Where they lie beside a team's data: a manifest where it does in a home, and a model."""
        folder, _, rest = self.folder.partition("/")
        return self.folder if folder == "datasets" else f"models/{rest.removesuffix('/model')}"


@dataclass(frozen=True)
class Artifacts:
    """The artifacts of records."""

    datasets: Mapping[str, Artifact]
    """The manifest of each dataset, by "name@version"."""
    jobs: tuple[Artifact, ...]
    """Models and reports of jobs."""
    missing: tuple[str, ...]
    """Datasets without a manifest, "name@version"."""

    @classmethod
    def of(cls, records: RecordStore) -> "Artifacts":
        """Those of some records; none where it is not known which home they are of."""
        home_layout = records.home_layout
        if home_layout is None:
            return cls({}, (), ())
        datasets, missing = {}, []
        for dataset in recorded_datasets(records):
            name = f"{dataset.name}@{dataset.version}"
            manifest = manifest_of(home_layout, dataset)
            if manifest is None:
                missing.append(name)
            else:
                datasets[name] = manifest
        job_files = []
        for job in recorded_jobs(records):
            folder = Path(job.paths.get("folder", ""))
            if folder != home_layout.home / "jobs" / job.name:
                continue
            for kind in ("model", "report"):
                names = tuple(names_in(folder / kind))
                if names:
                    is_model = kind == "model" and MODEL_FILE in names
                    job_files.append(
                        Artifact(f"jobs/{job.name}/{kind}", folder / kind, names, is_model)
                    )
        return cls(datasets, tuple(job_files), tuple(missing))


def manifest_of(home_layout: HomeLayout, dataset: Dataset) -> Artifact | None:
    """A dataset's manifest, where there is one."""
    folder = f"{_name_of_folder(dataset)}/v{dataset.version}"
    for location in manifest_locations(home_layout, dataset):
        if isinstance(location, Path):
            there = all((location / name).is_file() for name in MANIFEST_FILES)
        else:
            there = set(MANIFEST_FILES) <= set(names_in(location))
        if there:
            return Artifact(f"datasets/{folder}", location, MANIFEST_FILES)
    return None


def manifest_locations(home_layout: HomeLayout, dataset: Dataset) -> list[Path | S3Prefix]:
    """Where a dataset's manifest may lie: where it is recorded, where datasets lie, in the home."""
    own = manifest_location(home_layout, dataset)
    in_home = home_layout.home / "datasets" / _name_of_folder(dataset) / f"v{dataset.version}"
    recorded = Path(dataset.manifest)
    return list(dict.fromkeys([*([recorded] if recorded.is_absolute() else []), own, in_home]))


def manifest_location(home_layout: HomeLayout, dataset: Dataset) -> Path | S3Prefix:
    """Where the manifest of a dataset belongs; a name that it was given later moves no file."""
    return new_manifest_location(home_layout, _name_of_folder(dataset), dataset.version)


def _name_of_folder(dataset: Dataset) -> str:
    return dataset.first_name or dataset.name


def new_manifest_location(home_layout: HomeLayout, name: str, version: int) -> Path | S3Prefix:
    """Where the manifest of a new dataset goes."""
    return below(below(home_layout.datasets, name), f"v{version}")
