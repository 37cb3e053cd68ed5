"""Every form of the page is sent in a browser: all by an admin, a reader's by a reader."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, expect

from api.services.accounts.callers import NOBODY_ASKED
from api.services.session import Session
from catalog.accounts import row_collections, tokens, users
from catalog.records.store import RecordStore
from catalog.records.tables import Job
from pipeline.job_state import FINISHED
from pipeline.jobs.backends.turn import locked
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths
from tests.api.servers import serving, until_ready, wait_until
from tests.api.web.jobs import home_with_jobs
from tests.api.web.loop import home_with_loop, validated_by_training
from tests.browser.conftest import WAIT_MS, WIDE
from tests.browser.template_forms import Sent, forms_of
from tests.ingest.s3_server import moto
from tests.pipeline.homes import REPOSITORY, SAMPLE, open_home
from tests.training.drawn_home import ask

pytestmark = pytest.mark.browser

PASSWORD = "a long password"
CELL = "/jobs/v-first/frames?truth=car&predicted=sky"


@dataclass(frozen=True)
class Served:
    """A server of a home in the middle of the loop, with a training slot that is taken."""

    url: str
    home: Path
    token: str
    """One of rita's, to read."""
    states: dict[str, Any]
    """What the browser of each user stores once they have logged in."""
    sent: list[Sent] = field(default_factory=list)
    """All that pages asked for."""

    def record(self, request: Request) -> None:
        """Keep a request that a page sent, and nobody by its address."""
        if "referer" not in request.headers:
            return
        url = urlsplit(request.url)
        pairs = parse_qsl(url.query, True) + parse_qsl(request.post_data or "", True)
        self.sent.append(Sent(request.method, url.path, pairs))


@pytest.fixture(scope="module")
def served(
    catalogued: Path, tmp_path_factory: pytest.TempPathFactory, chromium: Browser
) -> Iterator[Served]:
    """With rita, an admin, who has logged in, and dan, who reads the frames of a collection.

    taught@1 is staged; the training slot is taken, so that jobs wait for it until the end.
    """
    jobs = home_with_jobs(catalogued, tmp_path_factory.mktemp("jobs"))
    home = home_with_loop(jobs, tmp_path_factory.mktemp("forms"))
    validated_by_training(home)
    ask(home, "stage", "taught")
    workspace = open_home(home)
    model = JobPaths(workspace.jobs / "first").model / "model.json"
    model.write_text("{}")
    settings = {"model": "first", "split": "train", "workers": 1, "stage": False}
    request = {"stages": [], "settings": settings, "resources": {"ranks": 1}}
    with workspace.records.session() as session:
        session.query(Job).filter_by(name="v-first").update({"request": request})
    workspace.close()
    records = RecordStore(home / "records" / "records.sqlite")
    for name, role in (("rita", "admin"), ("dan", "datauser")):
        users.add(records, name, [role], PASSWORD)
    _, token = tokens.create(records, "rita", "look", "read", timedelta(days=1))
    row_collections.add(records, "all", "filename like '%'")
    row_collections.assign(records, "all", "dan")
    slots = JobQueue(home / "jobs").slots("train").folder
    slots.mkdir(parents=True, exist_ok=True)
    slot = locked(slots / "slot-0")
    assert slot is not None
    hosts = {"FRAMESIFT_SOURCE_HOSTS": urlsplit(moto().endpoint).netloc}
    with serving(home, "--login-link", variables=hosts, authenticates=True) as (url, process):
        until_ready(url)
        assert process.stdout is not None
        link = next(line for line in process.stdout if "/login?" in line).strip()
        served = Served(url, home, token, {})
        with_link = chromium.new_context()
        with_link.on("request", lambda asked: served.record(asked))
        tab = with_link.new_page()
        tab.goto(link)
        tab.get_by_role("button", name="Log in by the link").click()
        expect(tab.locator("header")).to_contain_text("rita")
        served.states["rita"] = with_link.storage_state()
        yield served
        with_link.close()
    _end_jobs(home)
    os.close(slot)


def _end_jobs(home: Path) -> None:
    """Cancel what has not ended, and wait until it has."""
    workspace = open_home(home)
    jobs = Session(workspace, NOBODY_ASKED).jobs

    def running() -> list[str]:
        return [job.name for job in jobs.list(limit=100) if job.state not in FINISHED]

    for name in running():
        jobs.cancel(name)
    wait_until(lambda: running() == [])
    workspace.close()


@pytest.fixture
def user() -> str:
    """Who uses the browser."""
    return "rita"


@pytest.fixture
def context(chromium: Browser, served: Served, user: str) -> Iterator[BrowserContext]:
    """The browser of a user who has logged in."""
    context = chromium.new_context(viewport=WIDE, storage_state=served.states.get(user))  # type: ignore[arg-type]
    context.set_default_timeout(WAIT_MS)
    context.on("request", lambda asked: served.record(asked))
    yield context
    context.close()


@pytest.fixture
def tab(tab: Page, served: Served) -> Page:
    """The page of conftest.py, which says yes to each question."""
    tab.on("dialog", lambda dialog: dialog.accept())
    return tab


def form_to(tab: Page, path: str) -> Locator:
    """The forms that lead to a path."""
    return tab.locator(f'form[action="{path}"]')


def fold_out(tab: Page, title: str) -> None:
    """Open what a title folds."""
    tab.locator("summary", has_text=title).first.click()


def mark(tab: Page, value: str, place: int) -> None:
    """Mark a frame of a gallery by its form."""
    chosen = tab.locator(".gallery .thumb").nth(place).get_by_role("checkbox")
    chosen.check()
    tab.locator("#marks input[name=value]").fill(value)
    tab.locator("#marks").get_by_role("button", name="Mark", exact=True).click()
    expect(tab.locator("#marked")).to_contain_text(f"Set quality={value} on 1 frame")
    chosen.uncheck()


def mark_whole_cell(tab: Page) -> None:
    """Mark the frames of a cell that are shown, then all of it; each mark is undone."""
    told, chosen = tab.locator("#marked"), tab.locator("#chosen")
    send = tab.locator("#marks").get_by_role("button", name="Mark", exact=True)
    send.click()
    expect(told).to_have_text("Choose a frame first.")
    tab.get_by_role("button", name="All shown").click()
    expect(chosen).to_have_text("3 chosen")
    send.click()
    expect(told).to_contain_text("Set quality=bad on 3 frames")
    tab.keyboard.press("z")
    expect(told).to_contain_text("of 3 frames is as before")
    tab.get_by_role("button", name="All shown").click()
    expect(chosen).to_have_text("No frame chosen")
    everything = tab.get_by_label("all 3 of this cell")
    everything.check()
    send.click()
    expect(told).to_contain_text("Set quality=bad on 3 frames")
    expect(everything).not_to_be_checked()
    tab.get_by_role("button", name="Undo").click()
    expect(told).to_contain_text("of 3 frames is as before")


def test_frames_are_marked_and_a_question_is_kept(served: Served, tab: Page) -> None:
    """On Find, by a frame's page and by a cell's; a mark changes how many frames answer."""
    tab.goto(served.url)
    mark(tab, "checked", 0)
    mark(tab, "slip", 1)
    tab.get_by_role("button", name="Undo").click()
    expect(tab.locator("#marked")).to_contain_text("of 1 frame is as before")
    tab.goto(f"{served.url}/?is.quality=checked")
    expect(tab.locator("#matching")).to_have_text("1")
    fold_out(tab, "Save the question")
    tab.get_by_label("Name of the question").fill("checked")
    tab.get_by_label("Share it with all users").check()
    form_to(tab, "/questions").get_by_role("button", name="Save").click()
    expect(tab).to_have_url(f"{served.url}/questions")
    row = tab.get_by_role("row", name="checked")
    expect(row).to_contain_text("shared")
    expect(row).to_contain_text("the same as on")

    tab.goto(f"{served.url}{CELL}")
    mark_whole_cell(tab)
    mark(tab, "checked", 0)
    tab.goto(f"{served.url}/questions")
    expect(row).to_contain_text("+1 since")
    tab.get_by_role("button", name="Count checked from now").click()
    expect(row).to_contain_text("the same as on")
    tab.get_by_role("link", name="checked").click()
    expect(tab.locator("#matching")).to_have_text("2")
    tab.locator("#gallery .thumb a").first.click()
    tab.get_by_label("Value").fill("seen")
    tab.get_by_role("button", name="Mark", exact=True).click()
    expect(tab.locator("#marked")).to_contain_text("Set quality=seen on 1 frame")
    tab.goto(f"{served.url}/questions")
    expect(row).to_contain_text("-1 since")
    tab.get_by_role("button", name="Remove checked").click()
    expect(tab.locator("main")).to_contain_text("No question is saved yet")


def test_the_last_marks_are_undone_after_a_reload(served: Served, tab: Page) -> None:
    """Also on another page that marks; what is undone is offered no more."""
    tab.goto(served.url)
    mark(tab, "reloaded", 2)
    tab.reload()
    marked = tab.locator("#marked")
    expect(marked).to_contain_text("Last: Set quality=reloaded on 1 frame")
    tab.goto(f"{served.url}/?is.quality=reloaded")
    expect(tab.locator("#matching")).to_have_text("1")
    tab.locator("#gallery .thumb a").first.click()
    expect(marked).to_contain_text("Last: Set quality=reloaded on 1 frame")
    tab.get_by_role("button", name="Undo").click()
    expect(marked).to_contain_text("of 1 frame is as before")
    tab.goto(f"{served.url}/?is.quality=reloaded")
    expect(tab.locator("#matching")).to_have_text("0")
    expect(marked).to_be_empty()


@pytest.fixture
def plain(chromium: Browser, served: Served) -> Iterator[Page]:
    """A page of rita's browser without scripts."""
    context = chromium.new_context(
        viewport=WIDE,  # type: ignore[arg-type]
        storage_state=served.states["rita"],
        java_script_enabled=False,
    )
    context.set_default_timeout(WAIT_MS)
    context.on("request", lambda asked: served.record(asked))
    yield context.new_page()
    context.close()


def test_without_scripts_frames_are_seen_marked_and_unmarked(served: Served, plain: Page) -> None:
    """Find has pictures; the answer says what was marked, and undoes it; more are a page."""
    plain.goto(f"{served.url}/?min.car=1")
    thumbs = plain.locator("#gallery .thumb")
    assert thumbs.count() > 10
    pictures = plain.locator("#gallery .picture img").first
    assert pictures.evaluate("one => one.decode().then(() => one.naturalWidth)") == 320
    expect(plain.locator("#gallery .hint:visible")).to_have_count(0)
    for place in (0, 1):
        thumbs.nth(place).get_by_role("checkbox").check()
    plain.locator("#marks input[name=value]").fill("plain")
    plain.locator("#marks").get_by_role("button", name="Mark", exact=True).click()
    expect(plain.locator("main")).to_contain_text("Set quality=plain on 2 frames.")
    plain.get_by_role("button", name="Undo").click()
    expect(plain.locator("main")).to_contain_text("quality of 2 frames is as before.")
    plain.get_by_role("link", name="Go on").click()
    expect(plain).to_have_url(f"{served.url}/?min.car=1")
    expect(plain.locator(".badge", has_text="plain")).to_have_count(0)
    plain.goto(f"{served.url}/gallery?min.car=1")
    expect(plain.locator("header nav")).to_be_visible()
    expect(thumbs.first).to_be_visible()


def test_without_scripts_gaps_and_submissions_are_pages(served: Served, plain: Page) -> None:
    """With the page's frame, and a way back; nothing says that it loads."""
    plain.goto(f"{served.url}/datasets/taught@1")
    expect(plain.get_by_text("Compared with the catalog")).to_be_hidden()
    plain.get_by_role("link", name="Compare with the catalog").click()
    expect(plain.locator("header nav")).to_be_visible()
    plain.get_by_label("Classes and cameras with fewer frames than").fill("5000")
    plain.get_by_role("button", name="Compare", exact=True).click()
    expect(plain.locator("#gaps").get_by_role("row", name="Sky")).to_be_visible()
    plain.get_by_role("link", name="taught@1", exact=True).click()
    expect(plain.get_by_role("heading", name="Versions")).to_be_visible()
    plain.goto(f"{served.url}/new-job?dataset=taught@1")
    form = plain.get_by_role("form", name="Train a network")
    form.get_by_label("Steps", exact=True).fill("4")
    form.get_by_role("button", name="What would be submitted").click()
    expect(plain.locator("main")).to_contain_text("framesift_start")
    expect(plain.get_by_role("heading", name="What would be submitted")).to_be_visible()
    plain.go_back()
    expect(form.get_by_label("Steps", exact=True)).to_have_value("4")


def test_find_asks_as_its_forms_say(served: Served, tab: Page) -> None:
    """Conditions, the size of thumbnails, a pin, and SQL; each is in the URL."""
    tab.goto(served.url)
    matching = tab.locator("#matching")
    everything = matching.inner_text()
    tab.locator("select[name=size]").select_option("large")
    expect(tab.locator("#gallery")).to_have_class(re.compile("large"))
    expect(tab).to_have_url(re.compile("size=large"))
    tab.get_by_label("Pin Car to the top").check()
    expect(tab).to_have_url(re.compile("pin=car"))
    expect(tab.get_by_role("heading", name="Pinned")).to_be_visible()
    expect(tab.locator("#gallery")).to_have_class(re.compile("large"))
    tab.get_by_label("Car at least", exact=True).fill("1000")
    tab.get_by_label("Car at least", exact=True).press("Enter")
    expect(tab).to_have_url(re.compile("min.car=1000"))
    expect(matching).not_to_have_text(everything)
    fold_out(tab, "SQL, and copies for programs")
    tab.locator("textarea[name=where]").fill("car >= 0")
    tab.get_by_role("button", name="Ask by SQL").click()
    expect(tab).to_have_url(re.compile("where=car"))
    expect(tab.locator("#sql")).to_contain_text("car >= 0")


@pytest.mark.parametrize(
    ("method", "group", "fields", "says"),
    [
        ("A sample at random", "Sample", {"Frames": "6", "Strata": "camera"}, "6 frames"),
        (
            "A set that matches targets",
            "Match",
            {
                "Frames": "8",
                "Or targets, as JSON or CSV": '{"camera": {"front_center": 0.5, "*": 0.5}}',
            },
            "Target against achieved",
        ),
        ("As few as meet demands", "Cover", {"Demands": "car=3"}, "Target against achieved"),
        (
            "Those that a model is least sure of",
            "Uncertain",
            {"Tag of the score": "car", "Frames": "5"},
            "5 frames",
        ),
    ],
)
def test_frames_are_saved_by_each_method(
    served: Served, tab: Page, method: str, group: str, fields: Mapping[str, str], says: str
) -> None:
    """Its page says what was chosen."""
    tab.goto(f"{served.url}/new-dataset?min.car=1")
    tab.get_by_label("Name", exact=True).fill(group.lower())
    tab.get_by_label(method).check()
    for label, text in fields.items():
        tab.get_by_role("group", name=group, exact=True).get_by_label(label, exact=True).fill(text)
    tab.get_by_role("button", name="Save").click()
    expect(tab).to_have_url(f"{served.url}/datasets/{group.lower()}@1")
    expect(tab.locator("main")).to_contain_text(says)


def test_a_dataset_is_divided_completed_changed_and_removed(served: Served, tab: Page) -> None:
    """Each makes a version or changes what the page says; removing all leaves other datasets."""
    tab.goto(f"{served.url}/new-dataset?camera=front_center")
    tab.get_by_label("Name", exact=True).fill("front")
    tab.get_by_role("button", name="Save").click()
    expect(tab).to_have_url(f"{served.url}/datasets/front@1")

    fold_out(tab, "Divide it again")
    form = form_to(tab, "/datasets/front%401/splits")
    form.get_by_label("Splits", exact=True).fill("train=0.5,validation=0.5")
    form.get_by_role("button", name="Save as a new version").click()
    expect(tab).to_have_url(f"{served.url}/datasets/front@2")
    expect(tab.get_by_role("region", name="Splits", exact=True)).to_contain_text("validation")

    at_least = tab.get_by_label("Classes and cameras with fewer frames than")
    gaps = tab.locator("#gaps")
    answers: list[Request] = []
    tab.on("requestfinished", lambda request: answers.append(request))
    for number, rows in (("5000", 1), ("1", 0)):
        answers.clear()
        at_least.fill(number)
        at_least.press("Enter")
        expect(gaps.get_by_role("row", name="Sky")).to_have_count(rows)
        # Enter is a change and a sending: a second list would take away what is ticked by then.
        tab.wait_for_load_state("networkidle")
        assert [request.url for request in answers] == [
            f"{served.url}/datasets/front%402/gaps?at_least={number}"
        ]
    gaps.get_by_role("checkbox", name=re.compile("^Add ")).first.check()
    gaps.get_by_label("Sides may share scenes, drives and moments").check()
    gaps.get_by_role("button", name="Add frames of those that are ticked").click()
    expect(tab).to_have_url(f"{served.url}/datasets/front@3")

    tab.get_by_label("Compare with").select_option("front@1")
    tab.get_by_role("button", name="Compare").click()
    expect(tab.get_by_role("heading", name="From front@3 to front@1")).to_be_visible()
    tab.go_back()

    fold_out(tab, "Describe, rename, remove")
    tab.get_by_label("Description of this version").fill("With more cars.")
    tab.get_by_role("button", name="Describe").click()
    expect(tab.locator("#description")).to_have_text("With more cars.")
    fold_out(tab, "Describe, rename, remove")
    tab.get_by_label("Name of all its versions").fill("ahead")
    tab.get_by_role("button", name="Rename").click()
    expect(tab).to_have_url(f"{served.url}/datasets/ahead@3")
    fold_out(tab, "Describe, rename, remove")
    tab.get_by_role("button", name="Remove this version").click()
    expect(tab).to_have_url(f"{served.url}/datasets")
    tab.get_by_label("Part of a name").fill("AHEA")
    expect(tab.locator("#listed tbody tr")).to_have_count(1)
    tab.get_by_role("link", name="ahead").click()
    fold_out(tab, "Describe, rename, remove")
    tab.get_by_role("button", name="Remove all versions").click()
    expect(tab).to_have_url(f"{served.url}/datasets")
    expect(tab.get_by_role("link", name="taught")).to_be_visible()
    expect(tab.get_by_role("link", name="ahead")).to_have_count(0)


def test_an_error_stands_below_its_field(served: Served, tab: Page) -> None:
    """By its label, also where the field was folded; a second try takes it away."""
    tab.goto(f"{served.url}/new-job?dataset=taught@1")
    form = tab.get_by_role("form", name="Train a network")
    form.locator("summary", has_text="Resources").click()
    gpus = form.get_by_label("GPUs for each worker", exact=True)
    gpus.fill("none")
    form.locator("summary", has_text="Resources").click()
    expect(gpus).to_be_hidden()
    says = "GPUs for each worker: got 'none', expected a whole number"
    form.get_by_role("button", name="What would be submitted").click()
    expect(form.locator(".of-field")).to_have_text(says)
    expect(form.get_by_role("alert")).to_contain_text(says)
    expect(gpus).to_be_focused()
    expect(gpus).to_have_accessible_description(says)
    expect(gpus).to_have_attribute("aria-invalid", "true")
    gpus.fill("0")
    form.get_by_label("Steps", exact=True).fill("4")
    form.get_by_role("button", name="What would be submitted").click()
    expect(form.locator(".dry pre")).not_to_be_empty()
    expect(form.locator(".of-field")).to_have_count(0)
    assert gpus.get_attribute("aria-invalid") is None


def test_defaults_follow_the_forms_fields(served: Served, tab: Page) -> None:
    """As they are changed; an example behind one stays."""
    tab.goto(f"{served.url}/new-job?dataset=taught@1&model=first")
    train, check = (
        tab.get_by_role("form", name=name)
        for name in ("Train a network", "Check machines before a training")
    )
    steps, name = train.get_by_label("Steps", exact=True), check.get_by_label("Name", exact=True)
    expect(steps).to_have_attribute("placeholder", "default: 300")
    train.get_by_label("Epochs", exact=True).fill("80")
    train.get_by_label("Epochs", exact=True).press("Tab")
    expect(steps).not_to_have_attribute("placeholder", "default: 300")
    expect(steps).to_have_attribute("placeholder", re.compile(r"default: \d+$"))
    for form, backend in ((train, "slurm"), (check, "hosts")):
        form.locator("select[name=backend]").select_option(backend)
    machines = train.get_by_label("Machines", exact=True)
    expect(machines).to_have_attribute("placeholder", "default: any")
    expect(name).to_have_attribute("placeholder", re.compile("default: preflight-hosts-"))
    validate = tab.get_by_role("form", name="Validate a model")
    model = validate.get_by_label("Model name", exact=True)
    expect(model).to_have_attribute("placeholder", "default: first; such as night-3")


def test_jobs_are_begun_cancelled_and_resumed(served: Served, tab: Page) -> None:
    """Of each kind; they wait for the slot that is taken."""
    kinds = {
        "Train a network": ("Train", "waiting", {"Steps": "4"}),
        "Validate a model": ("Validate", "v-waiting", {}),
        "Study how training scales": ("Begin the study", "study", {"Steps": "4"}),
        "Check machines before a training": ("Check the machines", "machines", {}),
    }
    state = tab.locator("#state")
    for title, (word, name, fields) in kinds.items():
        tab.goto(f"{served.url}/new-job?dataset=taught@1&model=first")
        form = tab.get_by_role("form", name=title)
        for label, text in fields.items():
            form.get_by_label(label, exact=True).fill(text)
        fold = form.locator("summary", has_text="Resources")
        fold.click()
        form.get_by_label("Name", exact=True).fill(name)
        form.get_by_role("button", name="What would be submitted").click()
        expect(form.locator(".dry")).to_contain_text("framesift_start")
        form.get_by_role("button", name=word, exact=True).click()
        expect(tab).to_have_url(f"{served.url}/jobs/{name}")
        tab.get_by_role("button", name="Cancel").click()
        expect(state).to_have_text("cancelled")
    tab.goto(f"{served.url}/jobs/waiting")
    tab.get_by_role("button", name="Resume").click()
    expect(tab.locator("#job")).to_contain_text("attempt 2")
    tab.get_by_role("button", name="Cancel").click()
    expect(state).to_have_text("cancelled")


def test_jobs_are_compared_and_looked_into(served: Served, tab: Page) -> None:
    """Curves side by side, lines of a log, some classes of a matrix."""
    tab.goto(f"{served.url}/jobs")
    for name in ("first", "broken"):
        tab.get_by_label(f"Compare {name}", exact=True).check()
    tab.get_by_role("button", name="Compare those that are ticked").click()
    expect(tab.get_by_role("heading", name="Side by side")).to_be_visible()
    tab.goto(f"{served.url}/jobs/first")
    tab.get_by_label("Lines that have").fill("STEP")
    tab.get_by_label("Lines that have").press("Enter")
    expect(tab.locator("#log-end")).to_contain_text("1 line has this text")
    tab.goto(f"{served.url}/jobs/v-night?class=Car&class=Sky")
    columns = tab.locator(".matrix thead th")
    expect(columns).to_have_text(["truth \\ taken for", "Car", "Sky"])
    fold_out(tab, "Choose classes")
    search = tab.get_by_label("Classes whose name has")
    search.fill("STREET")
    shown = tab.locator(".choices li:visible")
    expect(shown.filter(has_text="RD normal street")).to_have_count(1)
    expect(shown).to_have_count(3)  # with those that are ticked
    search.press("Enter")
    expect(columns).to_have_text(["truth \\ taken for", "Car", "Sky"])
    search.fill("")
    tab.locator(".choices").get_by_label("Car", exact=True).uncheck()
    tab.get_by_role("button", name="Show these").click()
    expect(columns).to_have_text(["truth \\ taken for", "Sky"])


def test_a_validation_leads_to_scores_predictions_and_frames(
    served: Served, tab: Page, chromium: Browser
) -> None:
    """Scores become tags, a job predicts, frames are proposed, listed and saved."""
    tab.goto(f"{served.url}/jobs/v-untold")
    tab.get_by_role("button", name="Import scores, to ask Find by them").click()
    expect(tab).to_have_url(re.compile("/jobs/v-untold#result"))
    tab.goto(f"{served.url}/jobs/v-untold/next-frames?frames=0&label=3")
    tab.get_by_role("button", name=re.compile("Predict [0-9]+ frames? with first")).click()
    expect(tab.locator("#job")).to_contain_text("predict")
    tab.goto(f"{served.url}{CELL}")
    tab.get_by_role("button", name="Predict this validation's frames with first").click()
    expect(tab.locator("#job")).to_contain_text("predict of city@1")
    tab.goto(f"{served.url}{CELL}")
    tab.get_by_role("button", name="Import scores, and ask Find").click()
    expect(tab).to_have_url(re.compile("confusion"))

    tab.goto(f"{served.url}/jobs/v-night")
    form = tab.get_by_role("form", name="Which frames next")
    form.get_by_label("Labelled frames to add").fill("4")
    form.get_by_label("Unlabelled frames to list").fill("3")
    form.get_by_label("Chosen for the classes").fill("car")
    form.get_by_role("button", name="Propose frames").click()
    adding = tab.get_by_role("form", name="To add")
    expect(adding).to_contain_text("4 of 4 frames kept")
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save the label list").click()
    assert download.value.suggested_filename == "night-to-label.txt"
    plain = chromium.new_context(
        java_script_enabled=False, storage_state=tab.context.storage_state()
    )
    plain.on("request", lambda asked: served.record(asked))
    without = plain.new_page()
    without.goto(tab.url)
    without.get_by_role("group", name="Frames to add").locator("input").nth(2).uncheck()
    without.get_by_role("form", name="To add").get_by_role("button", name="Count again").click()
    expect(without.get_by_role("form", name="To add")).to_contain_text("3 of 4 frames kept")
    plain.close()
    proposal = tab.url
    adding.get_by_role("button", name="Save as a new version").click()
    expect(tab).to_have_url(f"{served.url}/datasets/taught@2")
    tab.goto(proposal)
    adding.get_by_role("button", name="Save, and train on it").click()
    expect(tab).to_have_url(re.compile("/new-job"))


def test_sources_are_added_and_scanned(served: Served, tab: Page) -> None:
    """A folder without a scan, given a layout and scanned twice; a bucket with its scan."""
    root, scene = served.home.parent / "more", "20260616_094856"
    shutil.copytree(SAMPLE / "camera_lidar_semantic" / scene, root / scene)
    shutil.copy(SAMPLE / "camera_lidar_semantic" / "class_list.json", root)
    tab.goto(f"{served.url}/operate")
    form = tab.get_by_role("form", name="A folder of this server")
    form.get_by_label("Name", exact=True).fill("mine")
    form.get_by_label("Folder", exact=True).fill(str(root))
    form.get_by_label("Scan it at once").uncheck()
    form.get_by_role("button", name="Look at its names").click()
    expect(form.locator(".looked")).to_contain_text("Looks like a2d2")
    form.get_by_role("button", name="Add the source").click()
    expect(tab).to_have_url(f"{served.url}/operate/sources/mine")
    about = tab.get_by_role("region", name="The source")
    for layout in ("camvid", "a2d2"):
        tab.locator("select[name=layout]").select_option(layout)
        tab.get_by_role("button", name="Set the layout").click()
        expect(about.locator("dd", has_text=re.compile(f"^{layout}$")).first).to_be_visible()
    tab.get_by_role("button", name="Scan", exact=True).click()
    expect(tab).to_have_url(re.compile(r"/jobs/scan-mine-\d+$"))
    expect(tab.locator("#state")).to_have_text("done")
    tab.goto(f"{served.url}/operate")
    tab.get_by_label("Part of a name").fill("MIN")
    expect(tab.locator("#listed tbody tr")).to_have_count(1)
    tab.get_by_label("Scan mine", exact=True).check()
    tab.locator("#listed").get_by_label("Count all labels again").check()
    tab.get_by_role("button", name="Scan the chosen source").click()
    expect(tab).to_have_url(re.compile(r"/jobs/scan-mine-\d+$"))
    expect(tab.locator("#state")).to_have_text("done")

    server, bucket = moto(), moto().new_bucket("forms")
    server.put_folder(bucket, root, "drives/")
    tab.goto(f"{served.url}/operate")
    form = tab.get_by_role("form", name="A bucket of an S3 server")
    for label, text in {
        "Name": "cos", "Bucket": f"s3://{bucket}/drives", "Endpoint": server.endpoint,
        "Region": "us-east-1", "Access key": server.access_key, "Secret key": server.secret_key,
    }.items():  # fmt: skip
        form.get_by_label(label, exact=True).fill(text)
    form.get_by_role("button", name="Look at its names").click()
    expect(form.locator(".looked")).to_contain_text("Looks like a2d2")
    form.get_by_role("button", name="Add the source").click()
    expect(tab).to_have_url(re.compile(r"/jobs/scan-cos-\d+$"))
    expect(tab.locator("#state")).to_have_text("done")
    tab.get_by_role("link", name="Find its frames").click()
    expect(tab.locator("#gallery .thumb")).to_have_count(3)


def test_a_staged_dataset_is_pinned_and_evicted(served: Served, tab: Page) -> None:
    """What is pinned says so; what was evicted is gone."""
    tab.goto(f"{served.url}/operate/cache")
    row = tab.get_by_role("row", name="taught@1")
    row.get_by_role("button", name="Pin").click()
    expect(row).to_contain_text("pinned")
    row.get_by_role("button", name="Unpin").click()
    expect(row).not_to_contain_text("pinned")
    row.get_by_role("button", name="Evict").click()
    expect(tab.locator("main")).to_contain_text("No dataset is staged.")


def test_users_and_tokens_come_and_go(served: Served, tab: Page, chromium: Browser) -> None:
    """A user is added, given roles, disabled and removed; a token logs in until it is revoked."""
    tab.goto(f"{served.url}/operate/users")
    form = tab.get_by_role("form", name="New user")
    form.get_by_label("Name", exact=True).fill("otto")
    form.get_by_label("Password", exact=True).fill(PASSWORD)
    form.get_by_role("button", name="Add the user").click()
    row = tab.get_by_role("row", name="otto")
    row.locator("summary").click()
    row.get_by_label("collectionadmin").check()
    row.get_by_role("button", name="Set the roles").click()
    expect(row.locator("summary")).to_have_text("datauser, collectionadmin")
    row.get_by_role("button", name="Disable").click()
    expect(row).to_contain_text("disabled")
    row.get_by_role("button", name="Enable").click()
    expect(row).to_contain_text("enabled")

    tab.goto(f"{served.url}/operate/tokens")
    form = tab.get_by_role("form", name="New token")
    form.get_by_label("Name", exact=True).fill("ci")
    form.get_by_label("Of user").fill("otto")
    form.get_by_role("button", name="Make the token").click()
    token = tab.locator("#made").inner_text()
    other = chromium.new_context()
    other.on("request", lambda asked: served.record(asked))
    theirs = other.new_page()
    for _ in range(2):
        theirs.goto(f"{served.url}/login")
        theirs.get_by_label("Token").fill(token)
        theirs.get_by_role("button", name="Log in by the token").click()
        expect(theirs.locator(".who")).to_contain_text("otto")
        theirs.get_by_role("button", name="Log out").click()
        expect(theirs.get_by_role("heading", name="Log in")).to_be_visible()
    tab.get_by_role("button", name="Revoke ci").click()
    expect(tab.get_by_role("row", name="ci otto")).to_contain_text("revoked")
    theirs.get_by_label("Token").fill(token)
    theirs.get_by_role("button", name="Log in by the token").click()
    expect(theirs.get_by_role("alert").last).to_contain_text("Not logged in")
    other.close()

    tab.goto(f"{served.url}/operate/users")
    tab.get_by_role("button", name="Remove otto").click()
    expect(row).to_have_count(0)
    expect(tab.get_by_role("row", name="dan")).to_be_visible()
    tab.goto(f"{served.url}/operate/audit")
    tab.get_by_label("User").fill("otto")
    tab.get_by_role("button", name="Show").click()
    entries = tab.get_by_role("region", name="Entries").locator("tbody tr")
    expect(entries.first).to_contain_text("otto")
    expect(entries.filter(has_text="rita")).to_have_count(0)


_ORDERS = """() => [
  ...[...document.forms].filter((form) => form.method === "post"
    && form.querySelector("button:not([type=button]):enabled")).map((form) => form.action),
  ...[...document.querySelectorAll("button[hx-post]:enabled")].map((button) =>
    new URL(button.getAttribute("hx-post"), location).href),
]"""
"""Where the buttons of a page lead that change something."""


_OF_EVERYBODY = (
    "/", "/questions", "/datasets", "/new-dataset?min.car=1", "/datasets/city@1",
    "/datasets/taught@1/diff?other=city@1", "/jobs", "/new-job",
)  # fmt: skip
_OF_JOBS = (
    "/jobs/first", "/jobs/broken", "/jobs/v-night", "/jobs/v-untold", CELL,
    "/jobs/v-night/next-frames?frames=3",
)  # fmt: skip
_OF_OPERATORS = (
    "/operate", "/operate/sources/a2d2", "/operate/scans/1", "/operate/cache",
    "/operate/snapshots", "/operate/users", "/operate/audit",
)  # fmt: skip


def orders(tab: Page, url: str) -> set[str]:
    """Paths of those of a page, but logging out."""
    return {str(each).removeprefix(url) for each in tab.evaluate(_ORDERS)} - {"/logout"}


def shown_orders(
    tab: Page, url: str, paths: Sequence[str], closed: Mapping[str, int]
) -> dict[str, set[str]]:
    """Those of the pages that have some.

    Args:
        closed: Status of each page that does not open.
    """
    of_pages = {}
    for path in paths:
        answer = tab.goto(url + path)
        assert answer is not None
        assert answer.status == closed.get(path, 200), path
        expect(tab.get_by_role("button", name="Log out")).to_be_visible()
        of_pages[path] = orders(tab, url)
    return {path: shown for path, shown in of_pages.items() if shown}


@pytest.mark.parametrize("user", ["dan"])
def test_a_reader_sends_what_a_reader_may(served: Served, tab: Page, user: str) -> None:
    """Questions, gaps, comparisons and tokens of their own; no other form is shown to them."""
    tab.goto(f"{served.url}/operate/tokens")
    tab.get_by_label("Name", exact=True).fill(user)
    tab.get_by_label("Password").fill(PASSWORD)
    tab.get_by_role("button", name="Log in by the password").click()
    expect(tab).to_have_url(f"{served.url}/operate/tokens")
    assert orders(tab, served.url) == {"/operate/tokens"}
    form = tab.get_by_role("form", name="New token")
    expect(form.locator("select[name=scope] option")).to_have_text(["read"])
    form.get_by_label("Name", exact=True).fill("notebook")
    form.get_by_role("button", name="Make the token").click()
    expect(tab.locator("#made")).to_contain_text("fs_")
    assert len(orders(tab, served.url)) == 2  # and what revokes it
    tab.get_by_role("button", name="Revoke notebook").click()
    expect(tab.get_by_role("row", name="notebook")).to_contain_text("revoked")

    tab.goto(served.url)
    field = tab.get_by_label("Car at least", exact=True)
    field.fill("1000")
    field.press("Enter")
    expect(tab.locator(".sentence")).to_contain_text("1,000 car pixels")
    tab.locator("#gallery .thumb a").first.click()
    expect(tab.locator("#place")).to_contain_text("of")
    frame = urlsplit(tab.url).path
    tab.goto(f"{served.url}/datasets/taught@1")
    at_least = tab.get_by_label("Classes and cameras with fewer frames than")
    sky = tab.locator("#gaps").get_by_role("row", name="Sky")
    expect(tab.locator("#gaps tbody tr").first).to_be_visible()
    expect(sky).to_have_count(0)
    at_least.fill("5000")
    at_least.press("Enter")
    expect(sky).to_be_visible()
    assert orders(tab, served.url) == set()
    tab.get_by_role("button", name="Compare").click()
    expect(tab.get_by_role("heading", name="From taught@1")).to_be_visible()
    pages = [frame, *_OF_EVERYBODY, *_OF_JOBS, *_OF_OPERATORS]
    others = dict.fromkeys(_OF_JOBS, 404) | dict.fromkeys(_OF_OPERATORS[1:], 403)
    proposal = {"/jobs/v-night/next-frames?frames=3": 403}
    assert shown_orders(tab, served.url, pages, others | proposal) == {
        "/operate": {"/operate/tokens"}  # it leads to their tokens
    }
    # What they may not do is said where it is done, and by whom it is; no link leads to it.
    for path, says in (
        ("/new-job", "To begin a job you need the role"), ("/jobs", "You see jobs of your own"),
        ("/new-dataset?min.car=1", "To save a dataset you need the role"),
    ):  # fmt: skip
        tab.goto(served.url + path)
        expect(tab.locator("main")).to_contain_text(says)
        expect(tab.locator("main form[method=post], main [disabled]")).to_have_count(0)
    for path in ("/", "/jobs", "/datasets", "/datasets/taught@1", frame):
        tab.goto(served.url + path)
        linked = tab.locator("a[href^='/new-job'], a[href^='/jobs/'], a[href^='/operate/']")
        expect(linked).to_have_count(0)


@pytest.mark.parametrize("user", ["nobody yet"])
def test_a_token_to_read_sends_what_reads(served: Served, tab: Page) -> None:
    """An admin's: jobs are compared, lists and logs searched; no form is there that changes."""
    tab.goto(f"{served.url}/jobs")
    tab.get_by_label("Token").fill(served.token)
    tab.get_by_role("button", name="Log in by the token").click()
    expect(tab).to_have_url(f"{served.url}/jobs")
    for name in ("first", "broken"):
        tab.get_by_label(f"Compare {name}", exact=True).check()
    tab.get_by_role("button", name="Compare those that are ticked").click()
    expect(tab.get_by_role("heading", name="Side by side")).to_be_visible()
    tab.goto(f"{served.url}/jobs/first")
    tab.get_by_label("Lines that have").fill("step")
    tab.get_by_label("Lines that have").press("Enter")
    expect(tab.locator("#log-end")).to_contain_text("1 line has this text")
    tab.goto(f"{served.url}/datasets")
    tab.get_by_label("Part of a name").fill("taugh")
    expect(tab.locator("#listed tbody tr")).to_have_count(1)
    closed = {
        "/jobs/v-night/next-frames?frames=3": 403, "/operate/users": 403, "/operate/audit": 403,
    }  # fmt: skip
    pages = [*_OF_EVERYBODY, *_OF_JOBS, *_OF_OPERATORS]
    assert shown_orders(tab, served.url, pages, closed) == {}
    for path in pages:
        if path not in closed:
            tab.goto(served.url + path)
            expect(tab.locator("main [disabled]")).to_have_count(0)
    tab.get_by_role("button", name="Log out").click()
    expect(tab.get_by_role("heading", name="Log in")).to_be_visible()


def test_every_form_of_the_templates_is_sent(
    served: Served, request: pytest.FixtureRequest
) -> None:
    """By the tests above: a new form, or a button that sends one elsewhere, goes into them."""
    run = {item.originalname for item in request.session.items if isinstance(item, pytest.Function)}
    if missing := {name for name in globals() if name.startswith("test_")} - run:
        pytest.skip(f"the forms are sent by all tests of this file, and not run: {missing}")
    templates = sorted((REPOSITORY / "api" / "web" / "templates").rglob("*.html"))
    forms = [form for path in templates for form in forms_of(path)]
    assert len(forms) > sum(path.read_text().count("<form") for path in templates) > 40
    unsent = [form for form in forms if not any(map(form.is_sent_by, served.sent))]
    assert unsent == []
