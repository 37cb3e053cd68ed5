"""Reads a training's run by MLflow's client and by its server's REST; writes it as JSON.

python read_mlflow.py FOLDER CACHE: the folder has mlflow.json, as a training writes it.
"""

import json
import sys
import urllib.request
from pathlib import Path

from mlflow import MlflowClient

about = json.loads(Path(sys.argv[1], "mlflow.json").read_text())
client = MlflowClient(tracking_uri=about["uri"])
run = client.get_run(about["run_id"])
artifacts = [file.path for file in client.list_artifacts(run.info.run_id)]
cache = Path(sys.argv[2])
cache.mkdir(parents=True, exist_ok=True)
record = client.download_artifacts(run.info.run_id, "run.json", str(cache))
experiment = client.get_experiment(run.info.experiment_id)
request = urllib.request.Request(
    f"{about['uri']}/api/2.0/mlflow/runs/search",
    json.dumps({"experiment_ids": [run.info.experiment_id]}).encode(),
    {"Content-Type": "application/json"},
)
with urllib.request.urlopen(request, timeout=60) as answer:
    runs = json.load(answer)["runs"]
sys.stdout.write(
    json.dumps(
        {
            "experiment": experiment.name,
            "name": run.info.run_name,
            "status": run.info.status,
            "params": run.data.params,
            "tags": run.data.tags,
            "metrics": {
                name: [
                    [metric.step, metric.value]
                    for metric in client.get_metric_history(run.info.run_id, name)
                ]
                for name in run.data.metrics
            },
            "artifacts": artifacts,
            "record": json.loads(Path(record).read_text()),
            "runs": runs,
        }
    )
)
