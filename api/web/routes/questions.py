"""/questions: the questions that users saved, and how many frames answer each by now."""

from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from api.http.dependencies import CurrentContext, CurrentSession
from api.http.routing import Router
from api.http.rules import READ, WRITE, Api
from api.schemas.saved_questions import CountedQuestionBody, SavedQuestionBody
from api.services.session import Session
from api.web.find.url_question import UrlQuestion
from api.web.forms import form_of
from api.web.narrowed import Holding, narrowed, narrowed_path
from api.web.pages import elsewhere, gone_on, page
from catalog.errors import FramesiftError, InvalidInput
from query.question.question import Question

router = Router(api=Api.WEB, prefix="/questions", include_in_schema=False)

_COUNTED = 50
"""Questions that one page lists: each is counted anew."""


@router.get("", rule=READ.but(work="selection"))
def get_questions_page(
    request: Request, session: CurrentSession, holding: Holding = ""
) -> Response:
    """The caller's questions and those that others share, with the frames that answer each now."""
    listed = narrowed(session.saved_questions.list(), holding, lambda one: one.name, most=_COUNTED)
    context = {
        "rows": [_counted(session, one) for one in listed.rows],
        "holding": holding,
        "are_all": listed.are_all,
        "section": "/",
    }
    return page(request, "questions.html", context)


@router.post("", rule=WRITE.but(work="selection"))
async def post_question_page(
    request: Request, session: CurrentSession, context: CurrentContext
) -> Response:
    """Save the question of Find that the form holds."""
    form = await form_of(request)
    name, search = form.get("name"), UrlQuestion.of(parse_qsl(form.get("asked")))
    context.about = f"question {name}"[:500]
    if search.get("dataset") or search.at is not None:
        raise InvalidInput("question: is asked of the newest catalog; leave dataset and at out")

    def save() -> Any:
        question = search.question(session.tags.classes_and_groups())
        return session.saved_questions.save(name, question, shared=bool(form.get("shared")))

    await run_in_threadpool(save)
    return gone_on(request, "/questions")


@router.get("/{name}", rule=READ.but(work="selection"))
def get_saved_question(name: str, session: CurrentSession) -> Response:
    """Find, with a saved question."""
    question = Question.model_validate(session.saved_questions.get(name).question)
    return elsewhere(UrlQuestion.of_question(question, session.tags.classes_and_groups()).url)


@router.post("/{name}/see", rule=READ.but(changes=True, work="selection"))
def post_see_page(name: str, session: CurrentSession, holding: Holding = "") -> Response:
    """Keep a question's number of frames as the one that the caller saw last."""
    session.saved_questions.see(name)
    return elsewhere(narrowed_path("/questions", holding))


@router.post("/{name}/remove", rule=WRITE)
def post_remove_page(
    name: str, session: CurrentSession, context: CurrentContext, holding: Holding = ""
) -> Response:
    """Forget a question."""
    context.about = f"question {name}: removed"[:500]
    session.saved_questions.remove(name)
    return elsewhere(narrowed_path("/questions", holding))


def _counted(
    session: Session, saved: SavedQuestionBody
) -> tuple[SavedQuestionBody, CountedQuestionBody | None, str]:
    """A question with its count and its sentence; why it cannot be asked, where it cannot."""
    try:
        counted = session.saved_questions.get(saved.name)
        question = Question.model_validate(saved.question)
        return saved, counted, session.selections.describe(question).sentence
    except FramesiftError as error:  # a tag of it was removed
        return saved, None, str(error)
