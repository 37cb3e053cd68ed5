"""A connection to a server, and what it is asked."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framesift.accounts import Audit, Collections, Tokens, Users
from framesift.automation.triggers import Triggers
from framesift.automation.webhooks import Webhooks
from framesift.cache import Cache
from framesift.datasets import Datasets
from framesift.forms.picture import Picture
from framesift.frames import Encoding, Frame, FramePages, frame_named, paged_frames
from framesift.http.pages import paged
from framesift.http.transport import Transport
from framesift.jobs import Jobs
from framesift.models import Models
from framesift.policies import Policies
from framesift.question import Names, PixelRange, ShareRange, one_question, question_of
from framesift.questions import SavedQuestions
from framesift.scans import Scans
from framesift.selection import Selection, Selections
from framesift.sources import Sources
from framesift.sql import SqlResult, Statements
from framesift.stagings import Stagings
from framesift.statistics import Statistics, asked_frames
from framesift.tags import Tags

_LOGIN_S = 60.0


class Client:
    """A connection to a server; usable as a context manager, and from several threads.

    Attributes:
        audit: Changes, and requests that were refused.
        cache: Datasets' files near the jobs.
        collections: Rows that users see whose role does not see all.
        datasets: Saved, versioned selections.
        jobs: Training, validation and other long work.
        models: What trainings and programs made.
        policies: Tags that are set on what a condition finds.
        saved_questions: Questions that are saved under a name.
        scans: What was found in sources.
        sources: Places that hold files.
        selections: Questions and their answers.
        stagings: Datasets' files brought near the jobs.
        statements: Statements in SQL.
        statistics: What frames hold.
        tags: Named values on frames.
        triggers: What begins jobs by itself.
        webhooks: Addresses that are told of jobs' ends.
        tokens: Your tokens.
        users: Who may ask.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout_s: float = 600.0,
        ca_bundle: str | None = None,
    ) -> None:
        """Nothing is sent yet.

        Args:
            url: The server, such as "http://127.0.0.1:8008".
            token: Sent with every request, where the server asks for one.
            timeout_s: How long an answer may take.
            ca_bundle: PEM file of authorities to trust, such as a self-signed certificate.

        Raises:
            FramesiftServerError: The URL cannot be one.
        """
        transport = Transport(url, token, timeout_s, ca_bundle)
        self._transport = transport
        self.datasets, self.jobs, self.models = (
            Datasets(transport),
            Jobs(transport),
            Models(transport),
        )
        self.selections, self.statements = Selections(transport), Statements(transport)
        self.statistics, self.stagings = Statistics(transport), Stagings(transport)
        self.cache = Cache(transport)
        self.sources, self.tags = Sources(transport), Tags(transport)
        self.scans, self.saved_questions = Scans(transport), SavedQuestions(transport)
        self.policies = Policies(transport)
        self.triggers, self.webhooks = Triggers(transport), Webhooks(transport)
        self.users, self.tokens = Users(transport), Tokens(transport)
        self.collections, self.audit = Collections(transport), Audit(transport)

    def __repr__(self) -> str:
        """The server; never the token."""
        return f"<framesift.Client {self._transport.url}>"

    def select(
        self,
        *,
        where: str | None = None,
        sql: str | None = None,
        camera: Names | None = None,
        scene: Names | None = None,
        has: Names = (),
        without: Names = (),
        share: Mapping[str, ShareRange] | None = None,
        time: tuple[str | None, str | None] | None = None,
        condition: Mapping[str, Any] | None = None,
        order: Names = (),
        limit: int | None = None,
        sample: int | None = None,
        seed: int = 0,
        model: str | None = None,
        at: int | None = None,
        **ranges: PixelRange,
    ) -> Selection:
        """The frames that meet every condition.

        Args:
            where: A WHERE body in SQL.
            sql: A SELECT with a column fkey, over what `sql` takes: the frames that it gives.
            camera: Camera or cameras; all when None.
            scene: Scene or scenes; all when None.
            has: Class or classes that must be in the frame.
            without: Class or classes that must not be.
            share: Share of the frame's pixels per class: ``{"car": (0.01, 0.2)}``.
            time: When the recording began, both ends included: ``("2018-08", "2018-10-15")``.
            condition: More conditions as data: ``{"kind": "any", "of": [...]}``, see
                docs/selections.md.
            order: Tags to order by, each with " desc" for falling order.
            limit: At most this many frames.
            sample: So many at random, decided by ``seed``.
            seed: Seed of the sample.
            model: A model whose scores were imported (`Tags.import_scores`): conditions and order
                may name its uncertainty, margin, miou, accuracy and loss, and ``where`` takes
                confusion(TRUTH, PREDICTED).
            at: The catalog snapshot to ask; the newest when None.
            **ranges: Pixels per class tag: ``car=(10_000, 20_000)``, ``bicycle=(1, None)``.

        Raises:
            InvalidQuestion: A value is not of its form, or the server refuses it.
            FramesiftServerError: The server does not answer.
        """
        question = question_of(
            where=where,
            sql=sql,
            camera=camera,
            scene=scene,
            has=has,
            without=without,
            share=share,
            time=time,
            condition=condition,
            order=order,
            limit=limit,
            sample=sample,
            seed=seed,
            model=model,
            **ranges,
        )
        return self.ask(question, at=at)

    def ask(self, question: Mapping[str, Any], *, at: int | None = None) -> Selection:
        """The frames that answer a question given as data, as a selection has it.

        Args:
            question: See docs/selections.md.
            at: The catalog snapshot to ask; the question's or the newest when None.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self.selections.ask(question, at=at)

    def sql(self, statement: str, *, at: int | None = None) -> SqlResult:
        """The rows of a SELECT in Db2's SQL; it runs when they are first asked for.

        Args:
            statement: Over metaocean, metaocean_view and t_<tag>.
            at: The catalog snapshot to ask; the newest when None.
        """
        return self.statements.run(statement, at=at)

    def frames(
        self,
        *,
        question: Mapping[str, Any] | None = None,
        dataset: str | Mapping[str, Any] | None = None,
        split: str | None = None,
        columns: Sequence[str] | None = None,
        page: int = 1_000,
        at: int | None = None,
        **conditions: Any,
    ) -> FramePages:
        """Frames by fkey, fetched a page at a time as they are wanted; all of one snapshot.

        Args:
            question: As a selection has it, without order, limit and sample.
            dataset: Only its frames: NAME, NAME@VERSION or a Dataset.
            split: Only this split of it.
            columns: Columns and tags of each; the server's choice when None.
            page: Frames that are fetched at once.
            at: The catalog snapshot to ask; the dataset's or the newest when None.
            **conditions: Of `select`, in place of a question. All frames where nothing is given.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
            TypeError: Both a question and conditions, or a keyword that there is not.
        """
        population = asked_frames(one_question(question, conditions), dataset, split, at)
        return paged_frames(self._transport, population, columns, page)

    def frame(self, fkey: str, *, at: int | None = None) -> Frame:
        """One frame, with all columns and tags that the catalog has of it.

        Raises:
            NotFound: There is none of that name.
        """
        return frame_named(self._transport, fkey, at)

    def prediction(
        self,
        fkey: str,
        *,
        model: str | None = None,
        job: str | None = None,
        errors: bool = False,
        classes: Sequence[str] | None = None,
        taken_for: Sequence[str] | None = None,
        format: Encoding = "png",  # noqa: A002
    ) -> Picture:
        """A model's prediction over a frame's camera image, as `Frame.prediction` has it.

        Args:
            model: The newest by this one.
            job: The one that this prediction job made, or, of another program's predictions, that
                this validation scored; with neither the newest of the frame.
            errors: In its place the pixels of another class than the label.
            classes: Only these, by tag or name; all when None. Of errors, those of the label.
            taken_for: Of errors: only pixels that the model took for these; all when None.
            format: How it is encoded.

        Raises:
            NotFound: There is no such frame, or no such prediction of it.
            InvalidQuestion: taken_for is given without errors.
        """
        frame = Frame({"fkey": fkey}, self._transport)
        return frame.prediction(
            model=model, job=job, errors=errors, classes=classes, taken_for=taken_for,
            format=format,
        )  # fmt: skip

    def classes(
        self,
        *,
        question: Mapping[str, Any] | None = None,
        dataset: str | Mapping[str, Any] | None = None,
        split: str | None = None,
        quantiles: bool = False,
        at: int | None = None,
        **conditions: Any,
    ) -> Sequence[Mapping[str, Any]]:
        """Frames and pixel share of every class; arguments as of `frames`.

        Args:
            question: As of `frames`.
            dataset: As of `frames`.
            split: As of `frames`.
            quantiles: Also quantiles, in the frames that contain the class.
            at: The catalog snapshot to ask; the newest when None.
            **conditions: As of `frames`.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        merged = one_question(question, conditions)
        report = self.statistics.classes(
            question=merged, dataset=dataset, split=split, quantiles=quantiles, at=at
        )
        classes: Sequence[Mapping[str, Any]] = report["classes"]
        return classes

    def classes_by(
        self,
        by: str,
        *,
        question: Mapping[str, Any] | None = None,
        dataset: str | Mapping[str, Any] | None = None,
        split: str | None = None,
        at: int | None = None,
        **conditions: Any,
    ) -> Mapping[str, Any]:
        """The same for each camera or scene, below "groups"; arguments as of `frames`.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        merged = one_question(question, conditions)
        return self.statistics.classes(question=merged, dataset=dataset, split=split, by=by, at=at)

    def histogram(
        self,
        *tags: str,
        bins: int | None = None,
        top: int | None = None,
        edges: Mapping[str, Sequence[float]] | None = None,
        log: Names = (),
        zero: Names = (),
        question: Mapping[str, Any] | None = None,
        dataset: str | Mapping[str, Any] | None = None,
        split: str | None = None,
        at: int | None = None,
        **conditions: Any,
    ) -> Mapping[str, Any]:
        """Frames by the values of one tag, or of two; other arguments as of `frames`.

        Args:
            *tags: A tag, class or column; or two.
            bins: Bins of a number; 20, or 8 of two tags, when None.
            top: Most frequent texts; 20, or 8 of two tags, when None.
            edges: Edges of a tag's bins, rising.
            log: Tags with bins of equal ratio.
            zero: Tags with a bin for 0 alone.
            question: As of `frames`.
            dataset: As of `frames`.
            split: As of `frames`.
            at: As of `frames`.
            **conditions: As of `frames`.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self.statistics.histogram(
            *tags,
            bins=bins,
            top=top,
            edges=edges,
            log=log,
            zero=zero,
            question=one_question(question, conditions),
            dataset=dataset,
            split=split,
            at=at,
        )

    def facets(
        self,
        *tags: str,
        question: Mapping[str, Any] | None = None,
        dataset: str | Mapping[str, Any] | None = None,
        split: str | None = None,
        at: int | None = None,
        **conditions: Any,
    ) -> Mapping[str, Any]:
        """Every tag's histogram under the other conditions, and how many frames answer.

        Args:
            *tags: Only these tags' or classes'; those of every tag when none is given.
            question: As of `frames`.
            dataset: As of `frames`.
            split: As of `frames`.
            at: As of `frames`.
            **conditions: As of `frames`.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        merged = one_question(question, conditions)
        return self.statistics.facets(*tags, question=merged, dataset=dataset, split=split, at=at)

    def correlation(
        self,
        validation: str,
        *,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
    ) -> Mapping[str, Any]:
        """Correlate the classes' shares of the pixels with the IoU that a validation found.

        Args:
            validation: A validation job, or a training job: its newest validation.
            dataset: Whose shares; the training set's when None.
            split: Of that dataset.
            at: The catalog snapshot to ask; the dataset's when None.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self.statistics.correlation(validation, dataset=dataset, split=split, at=at)

    def me(self) -> Mapping[str, Any]:
        """You: ``name``, ``roles``, ``level``, ``all_rows``; no name where nobody logs in.

        Raises:
            NotAuthenticated: The token is none.
        """
        return self._transport.json("GET", "/v1/me")

    def set_own_password(self, current: str, password: str) -> None:
        """Change your password; it ends what was logged in.

        Args:
            current: The one until now.
            password: The one from now on.

        Raises:
            NotAllowed: ``current`` is not your password.
        """
        body = {"current": current, "password": password}
        self._transport.json("PUT", "/v1/me/password", body)

    def info(self) -> Mapping[str, Any]:
        """Where the server's home is and how much there is in it.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        return self._transport.json("GET", "/v1/info")

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        asked: Mapping[str, object] | None = None,
        creates: bool = False,
    ) -> Mapping[str, Any]:
        """The document that any of the server's routes answers.

        Args:
            method: Of HTTP.
            path: Such as "/v1/classes"; /docs of the server lists them.
            body: Sent as JSON; nothing when None.
            asked: Parameters of the query; None is left out.
            creates: Whether it makes something: it then carries a key that keeps a repetition from
                making it twice.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self._transport.json(method, path, body, query=asked, creates=creates)

    def entries(self, path: str, name: str, **filters: object) -> Iterator[Mapping[str, Any]]:
        """The entries of any of the server's lists, fetched a page at a time as they are wanted.

        Args:
            path: Such as "/v1/users".
            name: The answer's field that holds the entries, such as "users".
            **filters: Parameters of the query; None is left out.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return paged(self._transport, path, name, **filters)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def log_in(url: str, user: str, password: str, *, ca_bundle: str | None = None) -> str:
    """A token for a user's name and password; it lasts an hour.

    Args:
        url: Such as "http://127.0.0.1:8008".
        user: The user's name.
        password: The user's password.
        ca_bundle: PEM file of authorities to trust, such as a self-signed certificate.

    Raises:
        NotAuthenticated: There is no such user and password.
        Throttled: Too many were tried.
        FramesiftServerError: The server does not answer.
    """
    transport = Transport(url, None, _LOGIN_S, ca_bundle)
    try:
        answer = transport.send("GET", "/auth/v1/token", auth=(user, password))
        return str(answer.headers.get("X-Auth-Token", ""))
    finally:
        transport.close()


def connect(url: str, token: str | None = None, *, ca_bundle: str | None = None) -> Client:
    """A client of the server at ``url``; nothing is sent before the first question.

    Args:
        url: Such as "http://127.0.0.1:8008".
        token: Sent with every request, where the server asks for one.
        ca_bundle: PEM file of authorities to trust, such as a self-signed certificate.

    Raises:
        FramesiftServerError: The URL cannot be one.
    """
    return Client(url, token, ca_bundle=ca_bundle)
