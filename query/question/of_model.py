"""Questions about a model's scores: what they name, as the names that the catalog has.

uncertainty                          the model's tag, demo_uncertainty
confusion(pedestrian, bicycle)       pixels that are pedestrian and that it took for bicycle
confusion("Obstacles / trash", car)  a class's name as the class list has it, quoted or not
confusion(vehicle, pedestrian)       the same of all classes of a class group
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from catalog.errors import InvalidInput, UnknownName
from catalog.lake.catalog import Catalog
from catalog.lake.schema import CONFUSION_CELLS
from catalog.lake.snapshot import Snapshot
from catalog.tags.confusion_cells import SCORES, ScoredModel, scored_models
from query.question.condition import Group, Leaf
from query.question.of_statement import with_condition
from query.question.question import Question
from query.question.tag_value import quoted

_NAME = r"""("(?:[^"]|"")*"|'(?:[^']|'')*'|[\w-]+(?: +[\w-]+)*)"""
_CONFUSION = rf"\bconfusion\s*\(\s*{_NAME}\s*,\s*{_NAME}\s*\)"
_PARTS = re.compile(
    # What does not end goes on to the end of the text: else each of many "/*" looks for its end.
    rf"""'[^']*(?:'|\Z)|"[^"]*(?:"|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|{_CONFUSION}""",
    re.DOTALL | re.IGNORECASE,
)
"""Texts, quoted names and comments of SQL, which stay as they are, and cells of a confusion."""

_SCORE = re.compile(rf"(?<![\w.])({'|'.join(SCORES)})(?![\w(])", re.IGNORECASE)


@contextmanager
def asking(
    store: Catalog, question: Question, at: int | None = None, *, portions: bool = False
) -> Iterator[tuple[Snapshot, Question]]:
    """The snapshot that a question is about, and the question in names that it has.

    Its statement is then a part of ``where``.

    Args:
        at: The snapshot to ask where the question names none; the newest when None.
        portions: Many statements will ask for some ten thousand rows each.
    """
    names_cells = _names_cells(question.where) or CONFUSION_CELLS in (question.sql or "").lower()
    of_all = store.reading_portions if portions else store.reading
    reading = store.reading_files if names_cells else of_all
    with reading(question.snapshot_for(at)) as snapshot:
        yield snapshot, in_names_of(snapshot, question)


def in_names_of(snapshot: Snapshot, question: Question) -> Question:
    """The question without its model and statement, in the snapshot's names; see `asking`."""
    return with_condition(snapshot, _without_model(snapshot, question))


def _without_model(snapshot: Snapshot, question: Question) -> Question:
    if question.model is None:
        if _names_cells(question.where):
            raise InvalidInput(
                "confusion(TRUTH, PREDICTED): of which model? Give one: --model, or the "
                "question's model"
            )
        return question
    models = snapshot.once("scored models", lambda: scored_models(snapshot))
    if question.model not in models:
        raise UnknownName(
            "model",
            question.model,
            models,
            "Scores come into the catalog by framesift tags import-scores VALIDATION.",
        )
    return _Names(models[question.model], snapshot).question(question)


def _names_cells(where: str | None) -> bool:
    return where is not None and any(_is_cell(token) for token in _PARTS.finditer(where))


def _is_cell(token: re.Match[str]) -> bool:
    return token[1] is not None


def _name(written: str) -> str:
    """A class's name as it is, where it is quoted: "Obstacles / trash"."""
    quote = written[:1]
    return written[1:-1].replace(2 * quote, quote) if quote in ("'", '"') else written


@dataclass(frozen=True)
class _Names:
    """The names of one model's scores."""

    scored: ScoredModel
    snapshot: Snapshot

    def question(self, question: Question) -> Question:
        condition = question.condition
        return question.model_copy(
            update={
                "model": None,
                "ranges": tuple(
                    each.model_copy(update={"tag": self._tag(each.tag)}) for each in question.ranges
                ),
                "condition": None if condition is None else self._condition(condition),
                "order": tuple(self._ordered(item) for item in question.order),
                "where": None if question.where is None else self._where(question.where),
                "sql": None if question.sql is None else self._where(question.sql),
            }
        )

    def _tag(self, name: str) -> str:
        return f"{self.scored.prefix}_{name.lower()}" if name.lower() in SCORES else name

    def _ordered(self, item: str) -> str:
        name, blank, direction = item.strip().partition(" ")
        return self._tag(name) + blank + direction

    def _condition(self, condition: Leaf | Group) -> Leaf | Group:
        if isinstance(condition, Group):
            return condition.model_copy(
                update={"of": tuple(self._condition(member) for member in condition.of)}
            )
        tag = getattr(condition, "tag", None)
        return condition if tag is None else condition.model_copy(update={"tag": self._tag(tag)})

    def _where(self, where: str) -> str:
        sql, end = "", 0
        for token in _PARTS.finditer(where):
            sql += self._between(where[end : token.start()])
            sql += self._pixels(token) if _is_cell(token) else token[0]
            end = token.end()
        return sql + self._between(where[end:])

    def _between(self, sql: str) -> str:
        return _SCORE.sub(lambda match: self._tag(match[1]), sql)

    def _pixels(self, match: re.Match[str]) -> str:
        """Pixels of a cell in Db2's SQL; 0 for a validated frame without it, none for another.

        None, too, where the frame's data set does not have the class that is the truth. A class
        group stands for its classes, and no pixel that the model took for what it is counts then.
        """
        # Of validations: a prediction compares with no truth.
        accuracy = f"{self.scored.prefix}_accuracy"
        if accuracy not in self.snapshot.tags:
            raise InvalidInput(
                f"{match[0]}: no validation of model {self.scored.model} was imported; import "
                "one: framesift tags import-scores VALIDATION"
            )
        truth, predicted = (self._class(_name(name)) for name in match.groups())
        of_cell = (
            f"model = {quoted(self.scored.model)} and truth {self._among(truth)} "
            f"and predicted {self._among(predicted)}"
        )
        if self._is_group(truth) or self._is_group(predicted):
            of_cell += " and truth <> predicted"
        known = f"{accuracy} is not null"
        if truth in self.snapshot.classes or self._is_group(truth):
            known += f' and "{truth}" is not null'
        return (
            f"case when {known} then coalesce((select "
            f"sum(pixels) from {CONFUSION_CELLS} where frame = fkey and {of_cell}), 0) end"
        )

    def _among(self, tag: str) -> str:
        """What holds for a cell's class that is this one, or one of this class group."""
        if not self._is_group(tag):
            return f"= {quoted(tag)}"
        return f"in ({', '.join(map(quoted, self.snapshot.groups[tag]))})"

    def _is_group(self, tag: str) -> bool:
        # A class map may have merged classes to one that is called as the group.
        return tag in self.snapshot.groups and tag not in self._own_classes

    def _class(self, name: str) -> str:
        known = self.snapshot.classes_and_groups
        tags = {title.lower(): tag for tag, title in known.items()}
        tag = tags.get(name.lower(), name.lower())
        # A model's classes may be others than those of labels: a class map merges them.
        if tag not in known and tag not in self._own_classes:
            raise UnknownName("class", name, {*known, *known.values(), *self._own_classes})
        return tag

    @cached_property
    def _own_classes(self) -> set[str]:
        """The classes of the model's cells."""
        cells = f"FROM {CONFUSION_CELLS} WHERE truth IS NOT NULL AND model = ?"
        model = self.scored.model
        rows = self.snapshot.execute(
            f"SELECT DISTINCT truth {cells} UNION SELECT DISTINCT predicted {cells}", [model, model]
        ).fetchall()
        return {str(row[0]) for row in rows}
