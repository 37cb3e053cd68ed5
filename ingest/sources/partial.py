"""A part of a source to be scanned: some folders, with or without what lies deeper."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from catalog.errors import InvalidInput


@dataclass(frozen=True)
class FolderSelection:
    """Selection of a source's folders; each ends in a slash, and "" is the source itself."""

    recursive: tuple[str, ...] = ()
    """Folders with everything below them."""
    flat: tuple[str, ...] = ()
    """Folders with the files that lie in them and no deeper."""

    @classmethod
    def of(cls, recursive: Iterable[str], flat: Iterable[str] = ()) -> "FolderSelection":
        """The selection of some folders below the root, with or without a slash at the end.

        Raises:
            InvalidInput: One leads out of the source, or none is given.
        """
        deep, only = [*map(_folder, recursive)], [*map(_folder, flat)]
        if not deep and not only:
            raise InvalidInput("no folder given: expected one or more below the source's root")
        return cls(tuple(dict.fromkeys(deep)), tuple(only))

    def with_partners(self, folders_around: Callable[[str], Sequence[str]]) -> "FolderSelection":
        """The selection with the folders where partners of its files lie.

        A frame's files lie in several folders: without all of these, the others would look as if
        they were missing.

        Args:
            folders_around: Layout.folders_around.
        """
        recursive = [other for folder in self.recursive for other in folders_around(folder)]
        flat = []
        for folder in self.flat:
            around = folders_around(folder)
            if [*around] == [folder]:
                flat.append(folder)
            else:
                recursive += around
        return FolderSelection(tuple(dict.fromkeys(recursive)), tuple(flat))

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders to list: in order, none below another."""
        top: list[str] = []
        for folder in sorted({*self.recursive, *self.flat}):
            if not any(folder.startswith(other) for other in top):
                top.append(folder)
        return tuple(top)

    def leaves_out(self, key: str) -> bool:
        """Return whether a listed file is not in the selection."""
        inside = any(key.startswith(folder) for folder in self.recursive) or any(
            key.startswith(folder) and "/" not in key[len(folder) :] for folder in self.flat
        )
        return not inside


def _folder(text: str) -> str:
    folder = text.strip("/")
    parts = folder.split("/") if folder else []
    if any(segment in ("", ".", "..") for segment in parts):
        raise InvalidInput(
            f"folder '{text[:200]}': expected one below the source's root, such as "
            "20180807_145028/label"
        )
    return f"{folder}/" if folder else ""
