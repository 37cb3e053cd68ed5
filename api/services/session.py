"""The services of a home for one caller: what HTTP, Discover's dialect, MCP and commands call."""

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from api.services.call import Call

if TYPE_CHECKING:
    from api.frame_images.drawing import Format
    from api.schemas.catalog import InfoAnswer
    from api.services.accounts.audit import Audit
    from api.services.accounts.collections import Collections
    from api.services.accounts.tokens import Tokens
    from api.services.accounts.users import Users
    from api.services.automation.triggers import Triggers
    from api.services.automation.webhooks import Webhooks
    from api.services.cache import Cache
    from api.services.catalog import Snapshots
    from api.services.datasets.service import Datasets
    from api.services.extractions import Extractions
    from api.services.frames import Frames
    from api.services.jobs.models import Models
    from api.services.jobs.service import Jobs
    from api.services.label_checks import LabelChecks
    from api.services.pictures import Pictures
    from api.services.policies.regexes import Regexes
    from api.services.policies.service import Policies
    from api.services.saved_questions import SavedQuestions
    from api.services.scans import Scans
    from api.services.searches import Searches
    from api.services.selections import Selections
    from api.services.sources.connections import Connections
    from api.services.sources.service import Sources
    from api.services.stagings import Stagings
    from api.services.statements import Statements
    from api.services.statistics.service import Statistics
    from api.services.tags import Tags


class Session(Call):
    """The services of a home, for one caller; each is imported when it is first used."""

    def info(self) -> "InfoAnswer":
        """Where things are and how much there is."""
        from api.services.catalog import info_of

        return info_of(self.workspace)

    def last_commit(self) -> datetime:
        """Time of the catalog's last change, naive UTC."""
        from api.services.catalog import last_commit

        return last_commit(self.workspace)

    def frame(self, fkey: str, *, at: int | None = None) -> dict[str, Any]:
        """A frame: its file's columns, and its tags, None without a value."""
        body = self.frames.get(fkey, at=at)
        return {**body.file, **body.tags}

    def prediction(
        self,
        fkey: str,
        *,
        model: str | None = None,
        job: str | None = None,
        errors: bool = False,
        classes: Sequence[str] | None = None,
        taken_for: Sequence[str] | None = None,
        format: "Format" = "png",  # noqa: A002
    ) -> bytes:
        """A model's prediction over a frame's camera image, encoded."""
        from api.frame_images.drawing import Look
        from api.frame_images.predictions import PredictionChoice

        some = ",".join(classes) if classes is not None else None
        taken = ",".join(taken_for) if taken_for else None
        choice = PredictionChoice(model, job, errors, classes=some, taken_for=taken)
        return self.pictures.prediction(fkey, choice, Look(format)).made()

    @cached_property
    def cache(self) -> "Cache":
        """The cache near the jobs."""
        from api.services.cache import Cache

        return Cache(self)

    @cached_property
    def extractions(self) -> "Extractions":
        """Tags read from the files of frames."""
        from api.services.extractions import Extractions

        return Extractions(self)

    @cached_property
    def jobs(self) -> "Jobs":
        """Training, validation and other long work."""
        from api.services.jobs.service import Jobs

        return Jobs(self)

    @cached_property
    def label_checks(self) -> "LabelChecks":
        """Checks of sources' labels."""
        from api.services.label_checks import LabelChecks

        return LabelChecks(self)

    @cached_property
    def models(self) -> "Models":
        """Models that training jobs made."""
        from api.services.jobs.models import Models

        return Models(self)

    @cached_property
    def pictures(self) -> "Pictures":
        """Pictures of frames, and models' predictions of them."""
        from api.services.pictures import Pictures

        return Pictures(self)

    @cached_property
    def policies(self) -> "Policies":
        """Tags that are set on what a condition finds."""
        from api.services.policies.service import Policies

        return Policies(self)

    @cached_property
    def regexes(self) -> "Regexes":
        """Regular expressions by name."""
        from api.services.policies.regexes import Regexes

        return Regexes(self)

    @cached_property
    def saved_questions(self) -> "SavedQuestions":
        """Questions that are saved under a name."""
        from api.services.saved_questions import SavedQuestions

        return SavedQuestions(self)

    @cached_property
    def scans(self) -> "Scans":
        """Scans of sources."""
        from api.services.scans import Scans

        return Scans(self)

    @cached_property
    def snapshots(self) -> "Snapshots":
        """Snapshots of the catalog."""
        from api.services.catalog import Snapshots

        return Snapshots(self)

    @cached_property
    def sources(self) -> "Sources":
        """Sources."""
        from api.services.sources.service import Sources

        return Sources(self)

    @cached_property
    def stagings(self) -> "Stagings":
        """Datasets' files brought near the jobs."""
        from api.services.stagings import Stagings

        return Stagings(self)

    @cached_property
    def connections(self) -> "Connections":
        """Sources as Spectrum Discover's connections."""
        from api.services.sources.connections import Connections

        return Connections(self)

    @cached_property
    def datasets(self) -> "Datasets":
        """Datasets."""
        from api.services.datasets.service import Datasets

        return Datasets(self)

    @cached_property
    def frames(self) -> "Frames":
        """Frames."""
        from api.services.frames import Frames

        return Frames(self)

    @cached_property
    def searches(self) -> "Searches":
        """Searches as Spectrum Discover's clients ask them."""
        from api.services.searches import Searches

        return Searches(self)

    @cached_property
    def selections(self) -> "Selections":
        """Questions and their answers."""
        from api.services.selections import Selections

        return Selections(self)

    @cached_property
    def statements(self) -> "Statements":
        """Statements in SQL."""
        from api.services.statements import Statements

        return Statements(self)

    @cached_property
    def statistics(self) -> "Statistics":
        """Statistics of frames."""
        from api.services.statistics.service import Statistics

        return Statistics(self)

    @cached_property
    def tags(self) -> "Tags":
        """Tags and tag families."""
        from api.services.tags import Tags

        return Tags(self)

    @cached_property
    def triggers(self) -> "Triggers":
        """The rules that begin jobs by themselves."""
        from api.services.automation.triggers import Triggers

        return Triggers(self)

    @cached_property
    def webhooks(self) -> "Webhooks":
        """Addresses that are told of jobs' ends."""
        from api.services.automation.webhooks import Webhooks

        return Webhooks(self)

    @cached_property
    def users(self) -> "Users":
        """Users."""
        from api.services.accounts.users import Users

        return Users(self)

    @cached_property
    def tokens(self) -> "Tokens":
        """Tokens."""
        from api.services.accounts.tokens import Tokens

        return Tokens(self)

    @cached_property
    def collections(self) -> "Collections":
        """Collections."""
        from api.services.accounts.collections import Collections

        return Collections(self)

    @cached_property
    def audit(self) -> "Audit":
        """The audit log."""
        from api.services.accounts.audit import Audit

        return Audit(self)
