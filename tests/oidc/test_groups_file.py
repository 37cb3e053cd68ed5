"""The file of groups is read again when it has changed; a broken one changes nothing."""

import logging
from pathlib import Path

import pytest

from api.oidc.group_table import GroupFile

ONE = '[[groups]]\ngroup = "src"\nroles = ["datauser"]\n'
TWO = ONE + '[[groups]]\ngroup = "src-private"\nroles = ["admin"]\n'


def put(path: Path, text: str) -> None:
    """Replace a file as tools do that write aside."""
    aside = path.with_suffix(".new")
    aside.write_text(text)
    aside.replace(path)


def roles(file: GroupFile) -> list[tuple[str, ...]]:
    """Roles of three groups, one without a row."""
    return [file.table.rights_of([name])[0] for name in ("src", "src-private", "others")]


def test_a_change_counts_after_two_looks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also one of the same size and by a link; nothing is read while nothing changes."""
    caplog.set_level(logging.INFO)
    real = tmp_path / "v1.toml"
    real.write_text(ONE)
    path = tmp_path / "groups.toml"
    path.symlink_to(real)
    file = GroupFile(path)
    assert roles(file) == [("datauser",), (), ()]
    file.look()
    file.look()
    assert not caplog.records
    (tmp_path / "v2.toml").write_text(TWO)
    _link(tmp_path, "v2.toml").replace(path)
    file.look()
    assert roles(file) == [("datauser",), (), ()]
    file.look()
    assert roles(file) == [("datauser",), ("admin",), ()]
    put(path, TWO.replace("src-private", "src-privata"))
    file.look()
    file.look()
    assert roles(file) == [("datauser",), (), ()]
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]


def _link(folder: Path, to: str) -> Path:
    link = folder / "link"
    link.symlink_to(folder / to)
    return link


@pytest.mark.parametrize(
    "broken", ["groups = [", "", ONE.replace("datauser", "root"), "\udcff", None]
)
def test_a_broken_file_keeps_the_table_and_is_told_once(
    broken: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No TOML, no groups, no such role, no UTF-8, no file; the next good one counts."""
    path = tmp_path / "groups.toml"
    put(path, ONE)
    file = GroupFile(path)
    if broken is None:
        path.unlink()
    else:
        path.write_bytes(broken.encode("utf-8", "surrogateescape"))
    for _ in range(4):
        file.look()
    assert roles(file) == [("datauser",), (), ()]
    (told,) = caplog.records
    assert told.levelname == "ERROR"
    assert f"FRAMESIFT_OIDC_GROUPS={path}: " in told.getMessage()
    assert "goes on with the table before" in told.getMessage()
    put(path, TWO)
    file.look()
    file.look()
    assert roles(file) == [("datauser",), ("admin",), ()]
