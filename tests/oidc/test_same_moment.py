"""Two processes of one home let the same new user in at the same moment: there is one user."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from catalog.accounts import row_collections, users
from catalog.records.store import RecordStore
from tests.api.servers import wait_until

pytestmark = pytest.mark.wide

ROUNDS = 4
_PROGRAM = """
import sys, time
from pathlib import Path
from catalog.accounts.provider_users import ProviderUser, Rights, let_in
from catalog.records.store import RecordStore

records, folder, me = RecordStore(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
rights = Rights(("dataadmin",), frozenset({"src"}), frozenset({"src", "src-private"}))
for number in range(int(sys.argv[4])):
    known = ProviderUser("https://id.example.com", f"subject-{number}", f"anna{number}")
    (folder / f"ready-{me}-{number}").touch()
    while not (folder / f"go-{number}").exists():
        time.sleep(0.001)
    user, note = let_in(records, known, rights)
    print(user.id, user.name, note, sep="|", flush=True)
"""


def test_one_user_is_made_and_nobody_is_refused(tmp_path: Path) -> None:
    """Both look, and find none, before either may write."""
    records = RecordStore(tmp_path / "records.sqlite")
    for name in ("src", "src-private"):
        row_collections.add(records, name, "datasource = 'a2d2'")
    users.add(records, "anna", ["datauser"], None)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(tmp_path / "records.sqlite"), str(tmp_path), me,
             str(ROUNDS)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[2],
        )
        for me in ("a", "b")
    ]  # fmt: skip
    for number in range(ROUNDS):
        ready = [tmp_path / f"ready-{me}-{number}" for me in ("a", "b")]
        wait_until(lambda ready=ready: all(each.exists() for each in ready))  # type: ignore[misc]
        with records.session():  # nobody else writes
            (tmp_path / f"go-{number}").touch()
            time.sleep(0.2)
    lines = []
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        lines.append([line.split("|") for line in out.splitlines()])
    for number, (one, other) in enumerate(zip(*lines, strict=True)):
        assert one[:2] == other[:2] == [one[0], f"anna{number}"]
        made = f"user anna{number} made: roles dataadmin; src"
        assert sorted([one[2], other[2]]) == ["", made]
    assert sorted(user.name for user in users.listed(records)) == [
        "anna", *(f"anna{number}" for number in range(ROUNDS)),
    ]  # fmt: skip
    assigned = {collection.name: names for collection, names in row_collections.listed(records)}
    assert sorted(assigned["src"]) == [f"anna{number}" for number in range(ROUNDS)]
    assert not assigned["src-private"]
