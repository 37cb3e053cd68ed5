"""Policies and their runs as JSON."""

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, PrivateAttr

from api.schemas.base import EXAMPLE_TIME, Numbered, PageAnswer, Schema, Versioned, iso_time
from catalog.text import bounded
from catalog.text.bounded import MOST_FEW, Name, Sql
from pipeline.policies.schedule import NOW

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.policy_tables import Policy, PolicyRun, Regex

State = Literal["active", "inactive"]
Action = Literal["AUTOTAG", "IMPORT_TAGS", "DEEPINSPECT"]

_PARAMETERS = "{tags: {TAG: VALUE}} for AUTOTAG; see docs/spectrum-discover.md for the others."


def _of_whole_characters(content: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text holds half of a character; send whole ones") from error
    return content


Content = Annotated[bounded.Content, AfterValidator(_of_whole_characters)]
"""A document that is kept, and answered as it is."""


class RunBody(Numbered):
    """A run of a policy."""

    run: str = Field(
        description="What it is known by.", examples=["0f1c9a54d7e24d7c9a1f3f6c5f0e7b7a"]
    )
    policy: str = Field(examples=["bikes"])
    state: str = Field(description="running, paused, complete, killed or failed")
    job: str = Field(
        description="The job that runs it; empty where somebody does, at a terminal.",
        examples=["policy-bikes-1"],
    )
    total: int = Field(description="Files that the condition found.", examples=[160])
    submitted: int = Field(description="Those that were taken up.", examples=[160])
    completed: int = Field(description="Those that are done.", examples=[159])
    failed: int = Field(description="Those that cannot be used.", examples=[1])
    skipped: int = Field(description="Those that had nothing to give.", examples=[0])
    error: str = Field(examples=[""])
    started: str = Field(examples=[EXAMPLE_TIME])
    finished: str | None = Field(examples=[EXAMPLE_TIME])

    @classmethod
    def of(cls, run: "PolicyRun", policy: str) -> "RunBody":
        """A record's."""
        body = cls(
            run=run.run_id,
            policy=policy,
            state=run.state,
            job=run.job,
            total=run.total,
            submitted=run.submitted,
            completed=run.completed,
            failed=run.failed,
            skipped=run.skipped,
            error=run.error,
            started=iso_time(run.started),
            finished=None if run.finished is None else iso_time(run.finished),
        )
        body._number = run.id
        return body


class PolicyBody(Versioned):
    """A policy."""

    name: str = Field(examples=["bikes"])
    action: str = Field(description="AUTOTAG, IMPORT_TAGS or DEEPINSPECT", examples=["AUTOTAG"])
    parameters: dict[str, Any] = Field(
        description="Of the action.", examples=[{"tags": {"project": "bikes"}}]
    )
    condition: str = Field(
        description="A WHERE body over metaocean_view; empty for every file.",
        examples=["bicycle > 5000"],
    )
    schedule: dict[str, Any] | None = Field(
        description="Parts of a time; null where it runs when it is told to.",
        examples=[{"hour": 5, "minute": 15}],
    )
    state: str = Field(description="active or inactive", examples=["active"])
    collections: list[str] = Field(
        description="Only their files; every file where there are none.", examples=[[]]
    )
    owner: str = Field(examples=["dora"])
    updated_by: str = Field(examples=["dora"])
    updated: str = Field(examples=[EXAMPLE_TIME])
    created: str = Field(examples=[EXAMPLE_TIME])
    last_run: RunBody | None = Field(description="Null before the first.")

    _explicit: str = PrivateAttr("true")

    @property
    def explicit(self) -> str:
        """The value that a client of Spectrum Discover set; nothing depends on it."""
        return self._explicit

    @classmethod
    def of(cls, policy: "Policy", last: "PolicyRun | None") -> "PolicyBody":
        """A record's, with its newest run."""
        body = cls(
            name=policy.name,
            action=policy.action,
            parameters=policy.parameters,
            condition=policy.condition,
            schedule=None if policy.schedule == NOW else policy.schedule,
            state=policy.state.lower(),
            collections=policy.collections,
            owner=policy.owner,
            updated_by=policy.updated_by,
            updated=iso_time(policy.updated),
            created=iso_time(policy.created),
            last_run=None if last is None else RunBody.of(last, policy.name),
        )
        body._explicit = policy.explicit
        return body.of_version(policy.version)


class NewPolicy(Schema):
    """A policy to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Letters, digits and ._@-.", examples=["bikes"])
    action: Action = Field(examples=["AUTOTAG"])
    parameters: Content = Field(description=_PARAMETERS, examples=[{"tags": {"project": "bikes"}}])
    condition: Sql = Field(
        default="",
        description="A WHERE body over metaocean_view; empty for every file.",
        examples=["bicycle > 5000"],
    )
    schedule: Content | None = Field(
        default=None,
        description="minute, hour, dayOfMonth, month, dayOfWeek, timezone; null where it runs when "
        "it is told to.",
        examples=[{"hour": 5, "minute": 15}],
    )
    state: State = Field(default="active", description="An inactive one does not run.")
    collections: list[Name] = Field(
        default=[],
        max_length=MOST_FEW,
        fail_fast=True,
        description="Only their files; else every file.",
    )


class PolicyChange(Schema):
    """Fields to change; those left out stay."""

    model_config = ConfigDict(extra="forbid")

    parameters: Content | None = Field(default=None, description=_PARAMETERS)
    condition: Sql | None = Field(default=None, description="A WHERE body over metaocean_view.")
    schedule: Content | None = Field(
        default=None, description="Parts of a time; null where it runs when it is told to."
    )
    state: State | None = None
    collections: list[Name] | None = Field(default=None, max_length=MOST_FEW, fail_fast=True)


class PoliciesAnswer(PageAnswer):
    """Policies by name."""

    policies: list[PolicyBody]


class RunsAnswer(PageAnswer):
    """Runs of a policy, newest first."""

    runs: list[RunBody]


class Due(Schema):
    """The policies whose time had come."""

    started: list[RunBody] = Field(description="Their runs, each a job.")


class RegexBody(Schema):
    """A regular expression that rules of policies name."""

    name: str
    pattern: str
    description: str

    @classmethod
    def of(cls, regex: "Regex") -> "RegexBody":
        """A record's."""
        return cls(name=regex.name, pattern=regex.pattern, description=regex.description)
