"""Actions of policies, read from the parameters that clients of Spectrum Discover send.

AUTOTAG        {"tags": {TAG: VALUE}}, or {"rule": ...}: a part of another field
IMPORT_TAGS    values from a CSV file that lies in a source
DEEPINSPECT    values that an extractor reads from the files themselves
"""

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from catalog.errors import InvalidInput, UnknownName
from catalog.text.bounded import MOST_FEW, Name, Text

BATCH_ROWS = 50_000
"""Files of one commit."""

Value = Text | bool | int | float


class SetTags(BaseModel):
    """AUTOTAG with constants."""

    tags: dict[Name, Value] = Field(min_length=1, max_length=100, fail_fast=True)

    @property
    def values(self) -> dict[str, str]:
        """Each tag's value as text, tags in lower case."""
        return {
            tag.lower(): value if isinstance(value, str) else json.dumps(value)
            for tag, value in self.tags.items()
        }


class Rule(BaseModel):
    """Takes a value from another field of the same file."""

    model_config = ConfigDict(populate_by_name=True)

    name: Literal["setFromExistingField"] = "setFromExistingField"
    action: Literal["split", "regex"]
    field: str = Field(alias="existingField", min_length=1, max_length=256)
    tag: str = Field(alias="newField", min_length=1, max_length=256)
    delimiter: str = Field(default="", max_length=256)
    field_number: int = Field(default=1, alias="fieldNo", ge=1, le=4_096)
    pattern: Text = Field(default="", alias="regexPattern")
    regex: Name = Field(default="", alias="regex_id", description="A registered pattern's name.")
    match_number: int = Field(default=1, alias="matchNo", ge=1, le=4_096)

    @model_validator(mode="after")
    def _complete(self) -> "Rule":
        if self.action == "split" and not self.delimiter:
            raise ValueError("action 'split' needs a delimiter, such as \"/\"")
        if self.action == "regex" and bool(self.pattern) == bool(self.regex):
            raise ValueError("action 'regex' needs a regexPattern, or the regex_id of a known one")
        return self


class TakeFromField(BaseModel):
    """AUTOTAG by a rule."""

    rule: Rule


class ImportTags(BaseModel):
    """IMPORT_TAGS."""

    agent: Name = "ImportTags"
    source_connection: Name = Field(min_length=1)
    tag_file_path: str = Field(min_length=1, max_length=4_096)
    tag_file_type: Literal["csv"] = "csv"


class DeepInspect(BaseModel):
    """DEEPINSPECT."""

    agent: Name = Field(min_length=1)
    extract_tags: list[Name] = Field(default=[], max_length=MOST_FEW, fail_fast=True)


Action = SetTags | TakeFromField | ImportTags | DeepInspect

ACTION_IDS = ("AUTOTAG", "DEEPINSPECT", "IMPORT_TAGS")


def action_of(action_id: str, parameters: Mapping[str, Any]) -> Action:
    """The action of a policy.

    Args:
        action_id: One of ACTION_IDS.
        parameters: As the policy's action_params.

    Raises:
        UnknownName: There is no such action.
        InvalidInput: The parameters are not those of the action, or it is CONTENTSEARCH.
    """
    if action_id == "CONTENTSEARCH":
        raise InvalidInput(
            "action_id CONTENTSEARCH: this server searches no files for patterns; an extractor of "
            "yours may, by DEEPINSPECT (docs/extractors.md), and AUTOTAG takes matches from fields"
        )
    if action_id not in ACTION_IDS:
        raise UnknownName("action_id", action_id[:80], ACTION_IDS)
    kind: type[Action]
    if action_id == "AUTOTAG":
        kind = TakeFromField if "rule" in parameters else SetTags
    else:
        kind = ImportTags if action_id == "IMPORT_TAGS" else DeepInspect
    try:
        return kind.model_validate(parameters)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(key) for key in ("action_params", *first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        raise InvalidInput(
            f"{path} of {action_id}: {message}; given: {str(first['input'])[:80]}"
        ) from error
