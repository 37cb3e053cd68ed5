"""What is printed of texts from outside does nothing."""

import json
import logging
import os
import subprocess
import sys

import pytest

from api.server.log_setup import JsonLines, TextLines
from catalog.text.visible_text import visible, visible_lines

pytestmark = pytest.mark.attacks

ACTING = [
    *(chr(code) for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"),
    *"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\udc80",
]
CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07\x9b2J\u202e"
FORGED = "a.png\n2026-01-01 admin deleted everything"


def test_what_acts_is_shown() -> None:
    """Every control, direction and line separator; everything else stays, tabs and lines too."""
    for character in ACTING:
        assert visible_lines(f"a{character}b").isprintable(), ascii(character)
        assert visible(f"a{character}b").isprintable()
    plain = "straße 日本 \U0001f697 a\\n e\u0301"
    assert visible(plain) == visible_lines(plain) == plain
    assert visible("a\tb\nc") == "a\\tb\\nc"
    assert visible_lines("a\tb\nc") == "a\tb\nc"
    assert visible("\x1b\x7f\u202e") == "\\x1b\\u007f\\u202e"
    document = json.dumps({"name": "".join(ACTING)}, ensure_ascii=False)
    assert json.loads(visible_lines(document)) == json.loads(document)


def test_lines_of_the_log() -> None:
    """A message of others is one line that does nothing, as text and as JSON."""
    said = CLIPBOARD + FORGED
    record = logging.LogRecord("l", logging.ERROR, "p", 1, said, None, None)
    for lines in (TextLines(), JsonLines()):
        assert lines.format(record).isprintable()


_PROGRAM = """
import json, sys
from api.cli.terminal import emit_json, emit_text, heading, stderr, stdout
from api.cli.progress_bar import progress_bar
from api.cli.tables.table import emit_table
said = json.loads(sys.argv[1])
emit_table(["name", "n"], [[said, 1], ["b", 2]])
stdout.print(f"removed {said}"); stderr.print(f"error: {said}")
heading(said)
with progress_bar(said, quiet=False) as bar:
    bar.show(1, 2, said)
emit_text(said + chr(10)); emit_json({"name": said})
"""


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_is_sent_nothing_that_acts(terminal: bool) -> None:
    """Tables, sentences, bars, errors, CSV, JSON; to a pipe these stay as they are."""
    said = CLIPBOARD + FORGED
    main, side = os.openpty() if terminal else os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, json.dumps(said)], stdout=side, stderr=side
    ) as process:
        os.close(side)
        sent = b""
        while piece := _read(main):
            sent += piece
    os.close(main)
    text = sent.decode()
    assert process.returncode == 0, text
    for acting in ("\x1b]52", "\x07", "\x9b", "\u202e"):
        assert text.count(acting) == (0 if terminal else 1 + (acting > "\x80")), ascii(acting)
    table = text.replace("\r\n", "\n").splitlines()[1]
    assert "a.png\\n2026-01-01 admin" in table
    assert "removed \\x1b]52;c;" in text


def _read(end: int) -> bytes:
    try:
        return os.read(end, 65536)
    except OSError:  # a terminal whose other side is closed
        return b""
