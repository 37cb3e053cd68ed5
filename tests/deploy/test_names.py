"""What deploy/ and docs/deploy.md name exists: settings, variables, commands, options, files."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from typer.main import get_command

from api.cli.main import app
from api.settings import SETTINGS
from tests.deploy.deployed import (
    DEPLOY,
    OF_OTHERS,
    commands,
    files,
    settings,
    variables,
)

KNOWN = {f"FRAMESIFT_{field}".upper() for field in SETTINGS}


def unknown_word(words: Sequence[str]) -> str:
    """The first word of a command line that Framesift does not know; empty where it knows all."""
    command: Any = get_command(app)
    rest = list(words)
    while hasattr(command, "get_command"):
        if not rest:
            return "a command is missing"
        name = rest.pop(0)
        below = command.get_command(None, name)
        if below is None:
            return name
        command = below
    options = {name: option for option in command.params for name in option.opts}
    options |= {name: option for option in command.params for name in option.secondary_opts}
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            continue
        option = options.get(word.partition("=")[0])
        if option is None:
            return word
        if not option.is_flag and "=" not in word:
            if not rest:
                return f"{word} without a value"
            rest.pop(0)
    return ""


def test_settings_exist() -> None:
    """Variables FRAMESIFT_* in every file, comments too."""
    named = list(settings())
    assert len({one.file for one in named}) >= 6
    assert [one for one in named if one.words[0] not in KNOWN] == []


def test_variables_of_our_containers_and_units_are_read() -> None:
    """By Framesift, or by libpq and boto3 in it."""
    named = list(variables())
    assert {"PGSERVICEFILE", "PGPASSFILE", "FRAMESIFT_QUERY_SPILL"} < {
        one.words[0] for one in named
    }
    assert [one for one in named if one.words[0] not in KNOWN | OF_OTHERS] == []


def test_commands_and_options_exist() -> None:
    """In containers, units, comments and scripts."""
    named = list(commands())
    begins = {one.words[:2] for one in named} | {one.words[:1] for one in named}
    assert {("serve",), ("watch",), ("compact",), ("catalog", "backup")} <= begins, begins
    assert len({one.file for one in named}) >= 8
    assert [(one, word) for one in named if (word := unknown_word(one.words))] == []


@pytest.mark.parametrize(
    ("words", "unknown"),
    [
        ("serve --host 0.0.0.0 --drain 5 --tls-self-signed", ""),
        ("catalog backup /x.tar", ""),
        ("serve --hots 0.0.0.0", "--hots"),
        ("catalog backups /x.tar", "backups"),
        ("catalog", "a command is missing"),
        ("serve --drain", "--drain without a value"),
    ],
)
def test_a_wrong_word_is_found(words: str, unknown: str) -> None:
    """The judge of the test above tells right from wrong."""
    assert unknown_word(words.split()) == unknown


def test_the_pages_commands_exist() -> None:
    """Those of docs/deploy.md."""
    page = (DEPLOY.parent / "docs" / "deploy.md").read_text("utf-8")
    shown = re.findall(
        r"(?:exec server |`(?:FRAMESIFT_HOME=\S+ )?)framesift ([a-z][^`\n|>#]*)", page
    )
    assert len(shown) >= 8
    assert [(line, word) for line in shown if (word := unknown_word(line.split()))] == []


def test_extras_of_images_exist() -> None:
    """Those that Containerfiles install."""
    project = (DEPLOY.parent / "pyproject.toml").read_text("utf-8")
    extras = set(re.findall(r"^([a-z0-9-]+) = \[", project, re.MULTILINE))
    named: set[str] = set()
    for path in files():
        if path.name.endswith("Containerfile"):
            text = path.read_text("utf-8")
            named |= {
                word
                for line in re.findall(r"EXTRAS?=([a-z0-9,-]+)", text)
                for word in line.split(",")
            }
    assert {"team", "train", "train-gpu"} <= named <= extras


def test_compose_mounts_files_that_exist() -> None:
    """Relative ones but secrets and frames, and every secret is declared, made and used."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    services = compose["services"]
    named = {
        volume["source"] if isinstance(volume, dict) else volume.split(":")[0]
        for service in services.values()
        for volume in service["volumes"]
    }
    local = [path for path in named if path.startswith(("./", "../"))]
    assert len(local) >= 5
    assert [path for path in local if not (DEPLOY / path).exists()] == []
    used = {name for service in services.values() for name in service.get("secrets", ())}
    assert used == set(compose["secrets"])
    assert {name for name in named if name[0].isalpha()} == set(compose["volumes"])


def test_the_portal_has_no_secrets_but_files() -> None:
    """Ports are loopback's, TensorBoard gets jobs alone, Jupyter's token is read from its file."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    portal = {name: one for name, one in services.items() if "portal" in one.get("profiles", ())}
    assert set(portal) == {"jupyter", "tensorboard"}
    for service in portal.values():
        assert service["image"] == "framesift-portal"
        assert [port for port in service["ports"] if not port.startswith("127.0.0.1:")] == []
        assert set(service.get("environment", {})) <= {"FRAMESIFT_SERVER"}
    (jobs,) = portal["tensorboard"]["volumes"]
    assert (jobs["source"], jobs["volume"]["subpath"], jobs["read_only"]) == ("home", "jobs", True)
    read = re.findall(
        r"/run/secrets/(\w+)", (DEPLOY / "compose/jupyter_server_config.py").read_text()
    )
    notebook = (DEPLOY.parent / "docs" / "examples" / "loop.ipynb").read_text("utf-8")
    read += re.findall(r"/run/secrets/(\w+)", notebook)
    assert sorted(read) == sorted(portal["jupyter"]["secrets"])
