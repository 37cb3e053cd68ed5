"""Saved questions, as they are recorded."""

from catalog.records.kinds import SAVED_QUESTIONS
from catalog.records.named import Named

_QUESTIONS = Named(
    "question", SAVED_QUESTIONS, "framesift question list and GET /v1/questions list them"
)
add, listed, recorded = _QUESTIONS.add, _QUESTIONS.listed, _QUESTIONS.recorded
change, remove, missing = _QUESTIONS.change, _QUESTIONS.remove, _QUESTIONS.missing
