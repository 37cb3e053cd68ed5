"""Where what belongs to the records lies: a home's folders, and for a team datasets and models.

    HOME/datasets/NAME/vN/         a dataset's manifest
    HOME/jobs/NAME/                a job: logs, model, report
    HOME/cache/                    what is staged

A catalog whose data lie elsewhere than in a home keeps its datasets and models beside the data, so
that every host of the team has them: `<data>-files/datasets/NAME/vN/`, `<data>-files/models/NAME/`.

In the records' database paths are relative to these folders, after a word that begins no path:
`@home/jobs/train-1`, `@datasets/city/v1`. So a home may be moved, restored and copied.
"""

import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catalog.storage.atomic_write import atomic_path
from catalog.storage.location import CatalogLocation
from catalog.storage.s3_prefix import S3Prefix

HOME, DATASETS = "@home", "@datasets"


@dataclass(frozen=True)
class HomeLayout:
    """Folders of a home's datasets, models and jobs."""

    home: Path
    """The home's folder on this host."""
    files: Path | S3Prefix | None = None
    """Folder or S3 prefix beside a team's data that holds `datasets` and `models`; None where they
    lie in the home.
    """

    @classmethod
    def of(cls, home: Path, location: CatalogLocation) -> "HomeLayout":
        """Those of a home whose catalog lies there."""
        data = location.data
        if isinstance(data, S3Prefix):
            # Below the whole of a bucket everything counts as the catalog's own.
            prefix = f"{data.prefix.removesuffix('/')}-files/"
            return cls(home, replace(data, prefix=prefix) if data.prefix else None)
        in_home = data.is_relative_to(home)
        return cls(home, None if in_home else data.with_name(f"{data.name}-files"))

    @property
    def datasets(self) -> Path | S3Prefix:
        """Where manifests lie."""
        return self.home / "datasets" if self.files is None else below(self.files, "datasets")

    def short(self, text: str) -> str:
        """A path as the database has it; as it is where it lies elsewhere."""
        for word, root in self._roots().items():
            if text == root or text.startswith(f"{root}/"):
                return word + text.removeprefix(root)
        return text

    def full(self, text: str) -> str:
        """The path that `short` shortened, in these folders."""
        for word, root in self._roots().items():
            if text == word or text.startswith(f"{word}/"):
                return root + text.removeprefix(word)
        return text

    def mapped(self, value: Any, change: Callable[[str], str]) -> Any:
        """JSON with every text changed by `short` or `full`."""
        if isinstance(value, str):
            return change(value)
        if isinstance(value, Mapping):
            return {key: self.mapped(one, change) for key, one in value.items()}
        if isinstance(value, Iterable):
            return [self.mapped(one, change) for one in value]
        return value

    def _roots(self) -> Mapping[str, str]:
        return {DATASETS: str(self.datasets).rstrip("/"), HOME: str(self.home)}


def below(folder: Path | S3Prefix, name: str) -> Path | S3Prefix:
    """A folder below a folder or prefix."""
    if isinstance(folder, Path):
        return folder / name
    return replace(folder, prefix=f"{folder.prefix}{name}/")


def names_in(folder: Path | S3Prefix) -> list[str]:
    """Every file below a folder or prefix, by its path below it."""
    if isinstance(folder, S3Prefix):
        return sorted(key.removeprefix(folder.prefix) for key, _ in folder.objects())
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


@contextmanager
def local_file(folder: Path | S3Prefix, name: str, scratch: Path) -> Iterator[Path]:
    """The file of that name below a place as a local one, for the block."""
    if isinstance(folder, Path):
        yield folder / name
        return
    fetched = folder.fetch(name, scratch / uuid.uuid4().hex)
    try:
        yield fetched
    finally:
        fetched.unlink(missing_ok=True)


def put_file(path: Path, folder: Path | S3Prefix, name: str) -> None:
    """Copy a local file to that name below a place; on a disk it is there whole or not at all."""
    if isinstance(folder, S3Prefix):
        folder.put(name, path)
        return
    with atomic_path(folder / name, parents=True) as partial_path:
        shutil.copyfile(path, partial_path)
