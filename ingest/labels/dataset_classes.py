"""Classes of a dataset, whose labels may be of several data sets."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from catalog.errors import InvalidInput
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList

UInt8 = npt.NDArray[np.uint8]

OfSources = tuple[tuple[str, ...], ClassList]
"""Names of sources and the class list of their labels."""


@dataclass(frozen=True)
class DatasetClasses:
    """Classes of a dataset: those of its sources' class lists, one for each tag.

    A class id is a position in `names`: the first list's classes come first, in its order.
    """

    lists: tuple[ClassList, ...]
    """The class lists, each once."""
    sources: tuple[tuple[str, ...], ...] = ((),)
    """Names of the sources of each; of one alone none, as it is all sources'."""

    @classmethod
    def of(
        cls, class_list: ClassList, others: Sequence[OfSources] = (), sources: Collection[str] = ()
    ) -> "DatasetClasses":
        """The classes of a dataset.

        Args:
            class_list: Of the sources that ``others`` do not name.
            others: Further class lists.
            sources: All sources of the dataset.

        Raises:
            InvalidInput: They have more than 255 classes, or one name for classes with two tags.
        """
        if not others:
            return cls((class_list,))
        named = {source for its_sources, _ in others for source in its_sources}
        dataset_classes = cls(
            (class_list, *(other for _, other in others)),
            (
                tuple(source for source in sources if source not in named),
                *(its_sources for its_sources, _ in others),
            ),
        )
        dataset_classes._check()
        return dataset_classes

    @classmethod
    def of_sources(cls, lists: Mapping[str, ClassList]) -> "DatasetClasses":
        """The classes of sources, by the class list of each; raises as `of`."""
        sources_of: dict[ClassList, list[str]] = {}
        for source, class_list in lists.items():
            sources_of.setdefault(class_list, []).append(source)
        first, *rest = sources_of
        return cls.of(first, [(tuple(sources_of[each]), each) for each in rest], lists)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "DatasetClasses":
        """The classes that `to_json` wrote, without the names of the first list's sources.

        Raises:
            InvalidInput: It is no class list.
            KeyError, TypeError: It is no JSON of classes.
        """
        return cls.of(ClassList.from_json(data["class_list"]), further_in(data))

    def to_json(self) -> dict[str, Any]:
        """The classes as `from_json` reads them: ``class_list``, and of several ``class_lists``."""
        return {"class_list": self.lists[0].to_json()} | further_lists(self)

    def __len__(self) -> int:
        """Number of classes."""
        return len(self.names)

    @property
    def further(self) -> tuple[OfSources, ...]:
        """The class lists but the first, and their sources."""
        return tuple(zip(self.sources[1:], self.lists[1:], strict=True))

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Tag of each class."""
        return tuple(self._name_of_tag)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each class, in the first list that has it."""
        return tuple(self._name_of_tag.values())

    @property
    def classes(self) -> tuple[str, ...]:
        """The names, as a ClassList has them: what asks for class names takes either."""
        return self.names

    @cached_property
    def ignored(self) -> frozenset[int]:
        """Ids of the classes that training and scores leave out, as every list says that has it."""
        learned = {tag for each in self.lists for tag in learned_tags(each)}
        return frozenset(n for n, tag in enumerate(self.tags) if tag not in learned)

    @cached_property
    def learned(self) -> tuple[str, ...]:
        """Names of the classes that training and scores do not leave out."""
        return tuple(name for n, name in enumerate(self.names) if n not in self.ignored)

    @cached_property
    def class_colours(self) -> UInt8:
        """(n_classes, 3) uint8 [RGB]: the colour to draw each class with."""
        colours = np.zeros((len(self), 3), np.uint8)
        for class_list in reversed(self.lists):
            colours[self.ids(class_list)[: len(class_list)]] = class_list.class_colours
        return colours

    def joined(
        self, sources: Collection[str], later: "DatasetClasses", later_sources: Collection[str]
    ) -> "DatasetClasses | None":
        """The classes with further sources; None where labels of these mean something else.

        Args:
            sources: Those of these classes.
            later: The classes of the further sources.
            later_sources: Those, of which some may be here, too.
        """
        of_source = {source: self.list_of(source) for source in sources}
        for source in later_sources:
            meaning = later.list_of(source).meaning
            same = next((each for each in self.lists if each.meaning == meaning), None)
            if same is None or of_source.setdefault(source, same) != same:
                return None
        rest = [
            (tuple(source for source, own in of_source.items() if own == class_list), class_list)
            for class_list in self.lists[1:]
        ]
        return DatasetClasses.of(self.lists[0], rest, of_source)

    def list_of(self, source: str) -> ClassList:
        """The class list of a source's labels."""
        return self.lists[self._position(source)]

    def is_panoptic(self, source: str) -> bool:
        """Return whether a source's labels are read by segments (ingest.labels.segments)."""
        return self.list_of(source).encoding.is_panoptic

    def ids(self, class_list: ClassList) -> UInt8:
        """(256,) uint8 [class id] by a class id of one of the lists; UNKNOWN_CLASS beyond."""
        position = {tag: index for index, tag in enumerate(self.tags)}
        ids = np.full(256, UNKNOWN_CLASS, np.uint8)
        ids[: len(class_list)] = [position[tag] for tag in class_list.tags]
        return ids

    def table_of(self, source: str) -> UInt8:
        """(encoding.values,) uint8 [class id] by the value of a pixel of a source's labels.

        Of panoptic labels by a segment's category.
        """
        return self._tables[self._position(source)]

    def words(self, dataset: str, class_list: ClassList) -> str:
        """The dataset, and of several lists the sources of one: for messages."""
        if len(self.lists) == 1:
            return dataset
        return f"{dataset} (of {', '.join(self.sources[self.lists.index(class_list)])})"

    def need_same_classes(self, dataset: str) -> None:
        """Accept lists that have the same classes to learn.

        Raises:
            InvalidInput: They differ.
        """
        first = self.lists[0]
        for other in self.lists[1:]:
            if odd := set(learned_tags(first)) ^ set(learned_tags(other)):
                raise InvalidInput(
                    f"dataset {self.words(dataset, first)} and {self.words(dataset, other)} have "
                    f"different classes, such as {', '.join(sorted(odd)[:3])}; give a class map "
                    "that names the classes of each: --classes cityscapes-19, or a file"
                )

    def _position(self, source: str) -> int:
        return self._positions[source] if len(self.lists) > 1 else 0

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return {source: n for n, sources in enumerate(self.sources) for source in sources}

    @cached_property
    def _name_of_tag(self) -> Mapping[str, str]:
        names: dict[str, str] = {}
        for class_list in self.lists:
            for tag, name in zip(class_list.tags, class_list.classes, strict=True):
                names.setdefault(tag, name)
        return names

    @cached_property
    def _tables(self) -> tuple[UInt8, ...]:
        """Of each list (encoding.values,) uint8 [class id] by a pixel's value."""
        first, *rest = self.lists
        return first.lookup_table, *(self.ids(each)[each.lookup_table] for each in rest)

    def _check(self) -> None:
        if len(self) > UNKNOWN_CLASS:
            raise InvalidInput(
                f"{len(self.lists)} class lists with {len(self)} classes in all; at most 255 are "
                "supported: make one dataset of each data set"
            )
        tag_of_name: dict[str, str] = {}
        for tag, name in self._name_of_tag.items():
            if (other := tag_of_name.setdefault(name, tag)) != tag:
                raise InvalidInput(
                    f"class {name} has the tag {other} in one source's class list and {tag} in "
                    "another's; give it one tag in their layouts, and scan them again"
                )


def learned_tags(class_list: ClassList) -> tuple[str, ...]:
    """Tags of the classes that training and scores do not leave out."""
    return tuple(tag for n, tag in enumerate(class_list.tags) if n not in class_list.ignored)


def further_lists(classes: DatasetClasses) -> dict[str, Any]:
    """``class_lists`` as `further_in` reads it; empty where all sources have one list.

    ``ids`` are the dataset's ids of a list's classes, for programs that know nothing of tags.
    """
    rows = [
        {
            "sources": [*sources],
            **class_list.to_json(),
            "ids": classes.ids(class_list)[: len(class_list)].tolist(),
        }
        for sources, class_list in classes.further
    ]
    return {"class_lists": rows} if rows else {}


def further_in(data: Mapping[str, Any]) -> tuple[OfSources, ...]:
    """The class lists of JSON with ``class_lists``, and the sources of each.

    Raises:
        InvalidInput: One is no class list.
        KeyError, TypeError: It is no JSON of class lists.
    """
    return tuple(
        (tuple(map(str, row["sources"])), ClassList.from_json(row))
        for row in data.get("class_lists", ())
    )
