"""Executes a notebook, and prints what each of its cells printed or shows, by its id, as JSON.

python execute_notebook.py NOTEBOOK
"""

import json
import sys

import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=900, kernel_name="python3").execute()
printed = {
    cell.id: "".join(
        output.text if output.output_type == "stream" else output.data.get("text/plain", "")
        for output in cell.outputs
        if output.output_type != "stream" or output.name == "stdout"
    )
    for cell in notebook.cells
    if cell.cell_type == "code"
}
sys.stdout.write(json.dumps(printed))
