"""Opens a training's events with TensorBoard and by its server; writes scalars as JSON.

python read_tensorboard.py FOLDER CACHE
"""

import json
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

accumulator = EventAccumulator(sys.argv[1], size_guidance={"tensors": 0})
accumulator.Reload()
files = {
    name: [
        [event.step, float(make_ndarray(event.tensor_proto))] for event in accumulator.Tensors(name)
    ]
    for name in accumulator.Tags()["tensors"]
}
said = Path(sys.argv[2], "tensorboard.log")
said.parent.mkdir(parents=True, exist_ok=True)
with said.open("wb") as log:
    server = subprocess.Popen(
        [sys.executable, "-m", "tensorboard.main", "--logdir", sys.argv[1], "--port", "0",
         "--host", "127.0.0.1", "--load_fast", "false", "--reload_multifile", "true"],
        stdout=log, stderr=log,
    )  # fmt: skip
try:
    while not (url := re.search(r"http://127\.0\.0\.1:\d+", said.read_text())):
        assert server.poll() is None, said.read_text()
        time.sleep(0.1)
    root = url[0]

    def ask(path: str) -> Any:
        """What the server answers."""
        with urllib.request.urlopen(f"{root}/data/plugin/scalars/{path}", timeout=60) as answer:
            return json.load(answer)

    served: dict[str, list[list[float]]] = {}
    while {*served} != {*files}:  # it loads the events beside
        time.sleep(0.1)
        ((run, tags),) = ask("tags").items() or [(".", {})]
        served = {
            tag: [[step, value] for _, step, value in ask(f"scalars?run={run}&tag={tag}")]
            for tag in tags
        }
finally:
    server.terminate()
    server.wait(60)
sys.stdout.write(json.dumps({"files": files, "served": served}))
