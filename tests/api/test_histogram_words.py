"""Options of a histogram have the same words in the command, REST, the client and tools."""

import inspect
from typing import Any

import pytest

import framesift
from api.app import create_app
from api.cli.commands.statistics import histogram_
from api.mcp.tools import Tools
from api.services.statistics import histogram_axes
from api.services.statistics.service import Statistics
from api.settings import Settings
from framesift.statistics import Statistics as StatisticsOfServer
from tests.pipeline.homes import REPOSITORY

WORDS = {
    "bins": histogram_axes.BINS,
    "top": histogram_axes.TOP,
    "edges": histogram_axes.EDGES,
    "log": histogram_axes.LOG,
    "zero": histogram_axes.ZERO,
}


def told_by_arguments(function: Any) -> dict[str, str]:
    """Help or description of each argument that is annotated with one."""
    hints = inspect.get_annotations(function, eval_str=True)
    notes = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    texts = {
        name: [getattr(note, "help", None) or getattr(note, "description", None) for note in all_of]
        for name, all_of in notes.items()
    }
    return {name: next(filter(None, all_of), "") for name, all_of in texts.items()}


@pytest.mark.wide
def test_every_door_says_the_same() -> None:
    """Names and words of the options, in help, OpenAPI and a tool's schema."""
    command = told_by_arguments(histogram_)
    tool = told_by_arguments(Tools.histogram)
    document = create_app(Settings(home=REPOSITORY / "none")).openapi()
    parameters = document["paths"]["/v1/statistics/histogram"]["get"]["parameters"]
    route = {parameter["name"]: parameter.get("description", "") for parameter in parameters}
    for name, words in WORDS.items():
        assert command[name].removesuffix(" Repeatable.") == words
        assert tool[name] == route[name] == words


@pytest.mark.parametrize(
    "method", [framesift.Client.histogram, StatisticsOfServer.histogram, Statistics.histogram]
)
def test_programs_have_the_same_arguments(method: Any) -> None:
    """A client, its statistics and the service take these, and what frames are counted."""
    arguments = inspect.signature(method).parameters
    assert {*WORDS, "question", "dataset", "split", "at"} < set(arguments)
