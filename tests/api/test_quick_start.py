"""What commands do without to start quickly gives what the slow way gives."""

import io
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from pydantic import ValidationError
from rich.console import Console

from api.cli import late_types, terminal
from api.settings import SETTINGS, Secret, Settings, _model, default_of, read_settings
from catalog.errors import InvalidInput


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.lower().startswith("framesift_"):
            monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_settings")
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_plain_texts_are_those_that_pydantic_reads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A place, a name or a secret is taken as it stands; the defaults are valid."""
    checked = _model()(**{name: default_of(name)})
    assert getattr(Settings(), name) == getattr(checked, name) == default_of(name)
    assert Settings().named == frozenset()
    variable = f"FRAMESIFT_{name.upper()}"
    monkeypatch.setenv(variable, "a/b")
    try:
        read = getattr(_model()(**{name: "a/b"}), name)
    except ValidationError:
        with pytest.raises(InvalidInput, match=f"{variable}=a/b: "):
            read_settings()
        return
    assert getattr(read_settings(), name) == read
    assert read_settings().named == {name}


@pytest.mark.usefixtures("no_settings")
def test_settings_by_name_go_before_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no plain text is checked; no name is taken that is no setting's."""
    monkeypatch.setenv("FRAMESIFT_HOME", "/by/variable")
    monkeypatch.setenv("FRAMESIFT_JOB_SLOTS", "2")
    monkeypatch.setenv("FRAMESIFT_SOURCE_HOSTS", "A:1, b,")
    settings = Settings(home="/by/name", cache=None, afm_command="ssh 'a b' x")
    assert (settings.home, settings.job_slots) == (Path("/by/name"), 2)
    assert settings.source_hosts == ("a:1", "b")
    assert settings.afm_command == ("ssh", "a b", "x")
    assert settings.named == {"home", "cache", "afm_command", "job_slots", "source_hosts"}
    others = replace(settings, job_slots=3, records=Secret("r"))
    assert (others.job_slots, others.records, others.home) == (3, Secret("r"), settings.home)
    with pytest.raises(ValidationError, match="homes"):
        Settings(homes="/by/name")
    monkeypatch.setenv("FRAMESIFT_RECORDS", "")
    with pytest.raises(InvalidInput, match=r"FRAMESIFT_RECORDS=: empty: name a place"):
        read_settings()


@pytest.mark.usefixtures("no_settings")
def test_a_secret_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with the settings nor alone; an empty one is none."""
    monkeypatch.setenv("FRAMESIFT_TOKEN", "hidden")
    settings = read_settings()
    assert settings.token == Secret("hidden")
    for shown in (repr(settings), str(settings.token), f"{settings.token!r}"):
        assert "hidden" not in shown
    assert not Secret("")


def _plain(value: Any, annotation: Any, **about: Any) -> Any:
    parameter = {"parser": None, "clamp": False, "min": None, "max": None, **about}
    return late_types._plain(value, annotation, SimpleNamespace(**parameter))


def test_only_texts_that_mean_themselves_need_no_type() -> None:
    """Whatever is wrong or written otherwise is left to typer."""
    assert _plain("7", str) == "7"
    assert _plain(("a", "b"), list[str]) == ["a", "b"]
    assert _plain("csv", Literal["csv", "json"]) == "csv"
    assert _plain("CSV", Literal["csv", "json"]) is None
    assert _plain("7", int) == 7
    assert _plain("7", int, min=7, max=7) == 7
    assert _plain("6", int, min=7) is _plain("8", int, max=7) is None
    assert _plain("9", int, max=7, clamp=True) is _plain("9", int, clamp=True) is None
    assert _plain("-7", int) is _plain("\u0667", int) is _plain("1_0", int) is None
    assert _plain(("1", "x"), list[int]) is _plain("0", bool) is _plain("1", float) is None
    assert _plain("7", str, parser=int) is None


@pytest.mark.parametrize(
    "text", ["a  [b]x[/b] :smile: ", "", "é漢字\n\nb ", "\x1b[1m\x07\r", "a\tb", 1200 * "long "]
)
def test_what_is_no_terminal_gets_what_rich_prints(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Rich, but for tabs."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    written, drawn = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.stdout", written)
    quick = terminal._LateConsole(err=False)
    quick.print(text, "b")
    quick.out(text, "c", sep="\n", style="bold", highlight=False)
    assert quick.width == terminal._WIDTH
    assert ("console" in vars(quick)) == ("\t" in text)
    rich = Console(**terminal._PLAIN, width=terminal._WIDTH, file=drawn)
    rich.print(terminal._seen(text), "b")
    rich.out(terminal._seen(text), "c", sep="\n", style="bold", highlight=False)
    assert written.getvalue() == drawn.getvalue()


def test_bytes_are_printed_to_the_character(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A text loses its colours, as typer prints it; rows and exports keep every name as it is."""
    terminal.emit_text("a\x1b[31mb", end="\n")
    terminal.emit_text("a\x1b[31m日".encode(), end="\n")
    assert capfdbinary.readouterr().out == b"ab\na\x1b[31m" + "日\n".encode()
