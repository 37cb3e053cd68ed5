"""/v1/questions: questions that users save under a name."""

from typing import Annotated
from urllib.parse import quote

from fastapi import Path, Response

from api.http.dependencies import CurrentContext, CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ, WRITE
from api.schemas.saved_questions import (
    CountedQuestionBody,
    NewSavedQuestion,
    SavedQuestionsAnswer,
)

router = Router(prefix="/v1/questions", tags=["selections"], examples={"name": "bikes"})

Name = Annotated[str, Path(description="The saved question.", examples=["bikes"])]


@router.get("", rule=READ)
def get_questions(session: CurrentSession, page: CurrentPage) -> SavedQuestionsAnswer:
    """The caller's saved questions and those that others share, by name."""
    questions = session.saved_questions.list()
    listed, follows = page.page_of_all("questions", questions, lambda one: (one.name,), str)
    return SavedQuestionsAnswer(questions=listed, next=follows)


@router.post(
    "",
    rule=WRITE.but(idempotency_key="takes", work="selection"),
    status_code=201,
    example={"name": "bikes", "question": {"ranges": [{"tag": "bicycle", "lowest": 5000}]}},
)
def post_question(
    body: NewSavedQuestion, session: CurrentSession, context: CurrentContext, response: Response
) -> CountedQuestionBody:
    """Save a question under a name, with the number of its frames."""
    context.about = f"question {body.name}"
    response.headers["Location"] = f"/v1/questions/{quote(body.name, safe='')}"
    return session.saved_questions.save(body.name, body.question, shared=body.shared)


@router.get("/{name}", rule=READ.but(work="selection"))
def get_question(name: Name, session: CurrentSession) -> CountedQuestionBody:
    """A saved question, and how many frames answer it now."""
    return session.saved_questions.get(name)


@router.post("/{name}/see", rule=READ.but(changes=True, work="selection"))
def post_see(name: Name, session: CurrentSession) -> CountedQuestionBody:
    """Keep the number of a question's frames now as the one that the caller saw last.

    Of a question that another user shares, too; each user has a number of their own.
    """
    return session.saved_questions.see(name)


@router.delete("/{name}", rule=WRITE, status_code=204)
def delete_question(name: Name, session: CurrentSession, context: CurrentContext) -> Response:
    """Forget a saved question; admins may remove others' questions."""
    context.about = f"question {name}: removed"
    session.saved_questions.remove(name)
    return Response(status_code=204)
