"""Tags, tag families and extractions as JSON."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from api.schemas.base import PageAnswer, Schema, Versioned
from api.schemas.home_orders import Extraction
from api.schemas.order_bodies import body_of
from catalog.tags.tag_rules import DEFAULT, OWN_FAMILY
from catalog.text.bounded import MOST_MANY, Name, Text

if TYPE_CHECKING:  # a list of tags does without what imports values
    from catalog.tags.families import Family
    from catalog.tags.model_scores import WrittenScores
    from ingest.imports.tag_import import TagImport

Kind = Literal["Open", "Restricted", "Characteristics"]

_PROBLEMS = 1_000


class TagBody(Versioned):
    """A tag."""

    tag: str = Field(examples=["weather"])
    family: str = Field(description="The catalog's table of it.", examples=["tags_own"])
    type: str = Field(description="The engine's type.", examples=["varchar"])
    kind: str = Field(
        description="Open, Restricted or Characteristics", examples=["Characteristics"]
    )
    values: list[str] = Field(description="Of a Restricted tag.", examples=[[]])
    title: str = Field(description="The class that it counts; else empty.", examples=[""])
    classes: list[str] = Field(
        description="Of a class group: the tags of the classes whose pixels it sums.", examples=[[]]
    )


class TagsAnswer(PageAnswer):
    """Tags by name."""

    tags: list[TagBody]


class NewTag(BaseModel):
    """A tag to be added."""

    model_config = ConfigDict(extra="forbid")

    tag: Name = Field(description="Lower-case letters, digits, '_' and '-'.", examples=["weather"])
    type: Literal["integer", "real", "text", "timestamp", "boolean"] = "text"
    kind: Name = Field(
        default=DEFAULT.kind,
        description="Open (256 characters), Restricted, or Characteristics (4,096).",
        examples=["Restricted"],
    )
    values: list[Text] = Field(
        default=[],
        max_length=MOST_MANY,
        fail_fast=True,
        description="Of a Restricted tag.",
        examples=[["sun", "rain", "fog"]],
    )
    family: Name = Field(default=OWN_FAMILY, description="Tag family to put it in.")


class NewGroup(BaseModel):
    """A class group to be defined."""

    model_config = ConfigDict(extra="forbid")

    tag: Name = Field(description="Lower-case letters, digits, '_' and '-'.", examples=["vehicle"])
    classes: list[Name] = Field(
        min_length=1,
        max_length=MOST_MANY,
        fail_fast=True,
        description="Tags or names of the classes whose pixels it sums.",
        examples=[["car", "truck", "bus"]],
    )


class TagChange(BaseModel):
    """The kind and values that a tag is to have."""

    model_config = ConfigDict(extra="forbid")

    kind: Name = Field(description="Open, Restricted or Characteristics.", examples=["Restricted"])
    values: list[Text] = Field(
        default=[],
        max_length=MOST_MANY,
        fail_fast=True,
        description="All values of a Restricted tag.",
        examples=[["sun", "rain"]],
    )


class Marks(BaseModel):
    """Values that frames are to have."""

    model_config = ConfigDict(extra="forbid")

    fkeys: list[Name] = Field(
        min_length=1,
        max_length=MOST_MANY,
        fail_fast=True,
        description="The frames.",
        examples=[["local:a2d2:x.png"]],
    )
    values: dict[Name, Text] = Field(
        min_length=1,
        max_length=100,
        description="Value of each tag, as text; an empty one takes the tag from the frames.",
        examples=[{"quality": "bad"}],
    )


class TagRemoved(Schema):
    """A tag that is no more."""

    model_config = ConfigDict(extra="forbid")

    tag: str = Field(examples=["weather"])
    files: int = Field(description="Files that had a value of it.", examples=[24])


class TagValue(Schema):
    """A value of a tag."""

    value: str = Field(description="As text, which t_<tag> has.", examples=["rain"])
    files: int = Field(description="Files that have it.", examples=[1630])


class TagValuesAnswer(Schema):
    """The most frequent values of a tag."""

    values: list[TagValue] = Field(description="Most frequent first.")
    distinct: int = Field(description="How many values there are in all.", examples=[3])


class FamilyBody(Versioned):
    """A tag family."""

    name: str = Field(examples=["weather"])
    columns: dict[str, str] = Field(
        description="Its tags and their types.", examples=[{"weather": "VARCHAR"}]
    )
    rows: int = Field(description="Files that have a row in it.", examples=[24])

    @classmethod
    def of(cls, family: "Family") -> "FamilyBody":
        """The catalog's."""
        body = cls(name=family.name, columns=dict(family.columns), rows=family.rows)
        return body.of_version(family.version)


class FamiliesAnswer(PageAnswer):
    """Tag families in order of creation."""

    families: list[FamilyBody]


class FamilyDropped(Schema):
    """A tag family that is no more."""

    model_config = ConfigDict(extra="forbid")

    family: str = Field(examples=["weather"])
    rows: int = Field(description="Files that had a row in it.", examples=[24])


class ImportBody(Schema):
    """Counts of an import of tags."""

    rows: int = Field(examples=[24])
    imported: int = Field(examples=[23])
    unmatched: int = Field(description="Rows that name no file.", examples=[1])
    ambiguous: int = Field(description="Rows that name several.", examples=[0])
    repeated: int = Field(description="Rows whose file an earlier one named.", examples=[0])
    unreadable: int = Field(examples=[0])
    columns: dict[str, str] = Field(
        description="The tags and their types.", examples=[{"weather": "VARCHAR"}]
    )
    ignored: list[str] = Field(
        description="Columns that say where a file lies, or number the rows.", examples=[["size"]]
    )
    notes: list[str] = Field(
        description="Columns that are texts for one value, or are left out.",
        examples=[["score: text, because of 'N/A' in line 5"]],
    )
    problems: list[dict[str, Any]] = Field(
        description="The first thousand rows that were not imported.",
        examples=[[{"line": 7, "key": "x.png", "kind": "unmatched", "reason": "names no file"}]],
    )

    _rejected: Any = PrivateAttr(None)

    @classmethod
    def of(cls, result: "TagImport") -> "ImportBody":
        """An import's."""
        names = ("rows", "imported", "unmatched", "ambiguous", "repeated", "unreadable")
        body = cls(
            **{name: getattr(result, name) for name in names},
            columns=dict(result.columns),
            ignored=list(result.ignored),
            notes=list(result.notes),
            problems=result.problems.slice(0, _PROBLEMS).to_pylist(),
        )
        body._rejected = result.problems
        return body

    @property
    def rejected(self) -> Any:
        """Every row that was not imported, as a pyarrow.Table: see TagImport.problems."""
        return self._rejected


class NewScores(Schema):
    """A validation whose scores are to be tags."""

    model_config = ConfigDict(extra="forbid")

    job: Name = Field(description="A validation that is done.", examples=["validate-streets-1"])


class ScoresBody(Schema):
    """Counts of an import of a model's scores."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(description="What a question names it by.", examples=["train-bikes-7"])
    family: str = Field(
        description="The tag family, which DELETE /v1/families/{family} removes with the cells.",
        examples=["scores_train_bikes_7"],
    )
    prefix: str = Field(
        description="What its tags begin with: train_bikes_7_uncertainty.",
        examples=["train_bikes_7"],
    )
    scores: list[str] = Field(
        description="What was written of them: the tags' names behind the prefix.",
        examples=[["accuracy", "loss", "margin", "miou", "uncertainty"]],
    )
    frames: int = Field(description="Whose scores were written.", examples=[8273])
    unknown: int = Field(description="Frames that the catalog does not have.", examples=[0])
    unlabelled: int = Field(
        default=0, description="Of the frames, those without a label.", examples=[0]
    )
    cells: int = Field(
        description="Of their confusion matrices; of frames that were only predicted, classes "
        "found.",
        examples=[530118],
    )

    @classmethod
    def of(cls, written: "WrittenScores") -> "ScoresBody":
        """A write's."""
        scored = written.scored
        return cls(
            model=scored.model,
            family=scored.family,
            prefix=scored.prefix,
            scores=list(written.scores),
            frames=written.frames,
            unknown=written.unknown,
            unlabelled=written.unlabelled,
            cells=written.cells,
        )


class MapJoinBody(Schema):
    """Counts of a join with a map."""

    model_config = ConfigDict(extra="forbid")

    features: int = Field(description="Of the map.", examples=[214])
    frames: int = Field(description="With a position, whose tags were written.", examples=[41277])
    near: int = Field(description="Those within the distance of a feature.", examples=[1630])
    columns: dict[str, str] = Field(
        description="The tags and their types.",
        examples=[{"near_bridge": "INTEGER", "bridge_distance_m": "DOUBLE"}],
    )


@body_of(Extraction)
class NewExtraction(Schema):
    """Tags to be read."""

    model_config = ConfigDict(extra="forbid")

    source: Name
    extractors: Annotated[list[Name], Field(min_length=1, fail_fast=True)]
