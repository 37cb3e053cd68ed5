"""Answering a question: what the routes and the commands both do."""

from api.workspace import Workspace
from query.frames.select_frames import select_frames
from query.frames.selection import Question, Selection
from query.question.describe import Description, describe
from query.question.why_empty import why_empty


def ask(workspace: Workspace, question: Question, at: int | None = None) -> Selection:
    """The answer to a question, within the settings' limits.

    Args:
        workspace: The home.
        question: What is wanted.
        at: The snapshot to ask; the newest when None.
    """
    return select_frames(
        workspace.catalog,
        question,
        workspace.class_names(),
        at,
    )


def described(
    workspace: Workspace, question: Question, at: int | None = None, *, answered: bool = False
) -> Description:
    """What a question means, without asking it; of the snapshot ``at`` as `ask`."""
    names = workspace.class_names()
    return describe(workspace.catalog, question, names, at, answered=answered)


def reason_for_none(workspace: Workspace, selection: Selection) -> str:
    """Why an answer has no frames; "" where it has some."""
    if len(selection):
        return ""
    names = workspace.class_names()
    return why_empty(workspace.catalog, selection.question, names)
