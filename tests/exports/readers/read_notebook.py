"""Runs a notebook that shows frames of a server: what its cells put out, as JSON.

    read_notebook.py FOLDER URL

The notebook as it was executed is left in FOLDER, and the outputs in its outputs.json.
"""

import json
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

CELLS = (
    "import framesift\nclient = framesift.connect({url!r})\nchosen = client.select(car=(1, None))",
    "chosen.show(limit=5, captions=['car'])",
    "client.datasets.create('shown', car=(1, None)).show(3, over=None, size='small')",
    "client.frames(car=(1, None)).show(2)",
    "print(repr(chosen.show()))",
)


def main() -> None:
    """Execute the cells in a kernel of this Python."""
    folder, url = Path(sys.argv[1]), sys.argv[2]
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell.format(url=url)) for cell in CELLS]
    NotebookClient(notebook, timeout=300, startup_timeout=300, kernel_name="python3").execute()
    nbformat.write(notebook, folder / "frames.ipynb")
    outputs = [[dict(output.get("data", output)) for output in cell.outputs]
               for cell in notebook.cells]  # fmt: skip
    sys.stdout.write(json.dumps(outputs))


main()
