"""A question as a sentence.

front-center frames with 10,000 to 20,000 car pixels and at least 1 bicycle pixel, without rain
dirt, in scene 20180807_145028, the 100 with the most pedestrian pixels first
"""

from collections.abc import Sequence

from query.question.condition import (
    CameraIn,
    Group,
    Has,
    Leaf,
    PixelRange,
    SceneIn,
    ShareRange,
    TagIs,
    TimeRange,
    Without,
)
from query.question.condition_sql import tag_values
from query.question.operators import OPERATORS
from query.question.question import Question
from query.question.question_sql import OrderItem, order_items
from query.question.tag_value import words_value
from query.question.vocabulary import Column, Vocabulary

_MOST_NAMES = 5
"""Scenes that are named one by one."""


def sentence(question: Question, vocabulary: Vocabulary) -> str:
    """The question in English, without a full stop."""
    conditions = list(question.conditions())
    cameras = next((member for member in conditions if isinstance(member, CameraIn)), None)
    if cameras is not None:
        conditions.remove(cameras)
    kind = "" if cameras is None else listed([_camera(name) for name in cameras.names], "or") + " "
    phrases = _merged([_phrase(condition, vocabulary) for condition in conditions])
    if question.where is not None:
        phrases.append(f"for which SQL says {' '.join(question.where.split())}")
    subject = ", ".join([" ".join([f"{kind}frames" if kind else "all frames", *phrases[:1]]),
                         *phrases[1:]])  # fmt: skip
    if phrases:
        subject = subject.removeprefix("all ")
    parts = [subject, *_sample(question), *_order(question, vocabulary)]
    if question.snapshot is not None:
        parts.append(f"as of snapshot {question.snapshot}")
    return ", ".join(parts)


def listed(words: Sequence[str], conjunction: str) -> str:
    """Words in commas, the conjunction before the last: "a, b or c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def _merged(phrases: Sequence[str]) -> list[str]:
    """Phrases that begin with the same preposition made one, each where its first one is."""
    by_word: dict[str, list[str]] = {}
    for phrase in phrases:
        word, _, rest = phrase.partition(" ")
        if word in ("with", "whose"):
            by_word.setdefault(word, []).append(rest)
        else:
            by_word.setdefault(word + rest, []).append(phrase)
    return [
        f"{word} {listed(ends, 'and')}" if word in ("with", "whose") else ends[0]
        for word, ends in by_word.items()
    ]


def _phrase(condition: Leaf | Group, vocabulary: Vocabulary) -> str:
    if isinstance(condition, Group):
        return _group(condition, vocabulary)
    if isinstance(condition, PixelRange):
        return _pixels(condition, vocabulary)
    if isinstance(condition, ShareRange):
        return _share(condition, vocabulary)
    if isinstance(condition, Has):
        column = vocabulary.class_tag(condition.tag)
        return f"with at least {_pixels_phrase(condition.pixels, column, vocabulary)}"
    if isinstance(condition, Without):
        column = vocabulary.class_tag(condition.tag)
        if condition.pixels == 1:
            return f"without {vocabulary.title(column)}"
        return f"with fewer than {_pixels_phrase(condition.pixels, column, vocabulary)}"
    if isinstance(condition, CameraIn):
        return f"of camera {listed([_camera(name) for name in condition.names], 'or')}"
    if isinstance(condition, SceneIn):
        return _scenes(condition)
    if isinstance(condition, TimeRange):
        return _time(condition)
    return _tag(condition, vocabulary)


def _group(group: Group, vocabulary: Vocabulary) -> str:
    """A group beside other conditions."""
    members = [_inner(member, vocabulary) for member in group.of]
    if group.kind == "none":
        return f"but not those {listed(members, 'or')}"
    return f"either {listed(members, 'or')}" if len(members) > 1 else members[0]


def _inner(condition: Leaf | Group, vocabulary: Vocabulary) -> str:
    """A condition inside a group."""
    if not isinstance(condition, Group):
        return _phrase(condition, vocabulary)
    members = [_inner(member, vocabulary) for member in condition.of]
    words = listed(members, "and" if condition.kind == "all" else "or")
    if condition.kind == "none":
        return f"not ({words})"
    return f"({words})" if len(members) > 1 else words


def _pixels(condition: PixelRange, vocabulary: Vocabulary) -> str:
    column = vocabulary.numeric_column(condition.tag)
    low, high = condition.lowest, condition.highest
    if column.name not in vocabulary.class_names:
        return _numbers(column, low, high)
    if high is None:
        return f"with at least {_pixels_phrase(low or 0, column, vocabulary)}"
    if low is None:
        return f"with at most {_pixels_phrase(high, column, vocabulary)}"
    if low == high:
        return f"with {_pixels_phrase(low, column, vocabulary)}"
    return f"with {low:,} to {_pixels_phrase(high, column, vocabulary)}"


def _numbers(column: Column, low: int | None, high: int | None) -> str:
    """A range of a tag whose numbers are no pixels."""
    if low is not None and high is not None:
        return f"whose {column.name} is {low:,}" + (f" to {high:,}" if low != high else "")
    operator, bound = (">=", low) if high is None else ("<=", high)
    return f"whose {column.name} {OPERATORS[operator].words.format(v=f'{bound:,}')}"


def _pixels_phrase(number: int, column: Column, vocabulary: Vocabulary) -> str:
    title = vocabulary.title(column)
    return f"one {title} pixel" if number == 1 else f"{number:,} {title} pixels"


def _share(condition: ShareRange, vocabulary: Vocabulary) -> str:
    title = vocabulary.title(vocabulary.class_tag(condition.tag))
    low, high = (
        "" if end is None else f"{round(100 * end, 7):g}%"
        for end in (condition.lowest, condition.highest)
    )
    if not high:
        words = f"at least {low}"
    elif not low:
        words = f"at most {high}"
    else:
        words = low if low == high else f"{low} to {high}"
    return f"with {title} on {words} of the pixels"


def _camera(name: str) -> str:
    return name.replace("_", "-")


def _scenes(condition: SceneIn) -> str:
    names = condition.names
    if len(names) > _MOST_NAMES:
        return f"in one of {len(names):,} scenes"
    return f"in scene {listed(names, 'or')}"


def _time(condition: TimeRange) -> str:
    start, end = condition.start, condition.end
    if start == end:
        return f"recorded in {start}"
    words = f" from {start}" if start is not None else ""
    return f"recorded{words}" + (f" up to and including {end}" if end is not None else "")


def _tag(condition: TagIs, vocabulary: Vocabulary) -> str:
    column, values = tag_values(condition, vocabulary)
    texts = [words_value(value) for value in values]
    first, second, *_ = [*texts, "", ""]
    words = OPERATORS[condition.op].words.format(v=first, w=second, many=listed(texts, "or"))
    return f"whose {vocabulary.title(column)} {words}"


def _sample(question: Question) -> list[str]:
    if question.sample is None:
        return []
    return [f"{question.sample:,} of them drawn at random with seed {question.seed}"]


def _order(question: Question, vocabulary: Vocabulary) -> list[str]:
    items = order_items(question, vocabulary)
    words = ", then ".join(_ordered(item, vocabulary) for item in items)
    limit = question.limit
    if limit is None:
        return [f"those with {words} first"] if items else []
    if not items:
        return [f"the first {limit:,} by name" if limit > 1 else "the first by name"]
    return [f"the {limit:,} with {words} first" if limit > 1 else f"the one with {words}"]


def _ordered(item: OrderItem, vocabulary: Vocabulary) -> str:
    column = item.column
    if column.name in vocabulary.class_names:
        return f"the {'most' if item.falling else 'fewest'} {vocabulary.title(column)} pixels"
    words = {"number": ("highest", "lowest"), "time": ("latest", "earliest")}
    falling, rising = words.get(column.type, ("last", "first"))
    return f"the {falling if item.falling else rising} {column.name}"
