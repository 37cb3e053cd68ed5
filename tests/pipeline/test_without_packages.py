"""A process that does without packages."""

import subprocess
import sys

_PROGRAM = """
from pipeline.runs.without_packages import do_without
do_without("pandas", "scipy")
import numpy, pyarrow
pyarrow.array([1, None])
for name in ("pandas", "pandas.io", "scipy"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error)
"""


def test_neither_the_program_nor_its_libraries_import_them() -> None:
    output = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    ).stdout
    assert output.splitlines() == [
        "this process does without pandas",
        "this process does without pandas",
        "this process does without scipy",
    ]
