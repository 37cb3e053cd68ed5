"""Starts Framesift's own modules, whatever a user's PYTHONPATH holds.

``api``, ``query``, ``catalog``, ``training`` are names that users' projects have, too, and
PYTHONPATH comes before installed packages. So whatever starts a process of Framesift's starts this
package, whose name nobody else has: it puts the folder in which it lies first, and goes on with the
module.
What a user's program imports stays the user's: no variable is changed. A leaf, standard library
only.
"""

import sys
from pathlib import Path

OWN = frozenset(
    ("api", "catalog", "framesift", "framesift_start", "ingest", "pipeline", "query", "sample_data",
     "training")
)  # fmt: skip
"""Names of Framesift's packages."""


def start(module: str) -> tuple[str, ...]:
    """Arguments of a Python that runs a module of Framesift's."""
    # -P: a folder "api" where the user happens to stand is not ours.
    return ("-P", "-m", __name__, module)


def own_root_first() -> None:
    """Have this process import Framesift's packages from beside this one."""
    root = str(Path(__file__).resolve().parent.parent)
    sys.path[:] = [root, *(folder for folder in sys.path if folder != root)]


def command() -> None:
    """Run the command line, and end this process."""
    own_root_first()
    from importlib import import_module  # no import statement: this package needs none of the rest

    import_module("api.cli.program").run()
