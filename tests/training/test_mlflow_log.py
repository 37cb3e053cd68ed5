"""A training's figures in MLflow, by its own client and a store of its own in a folder."""

from pathlib import Path

import pytest

from catalog.errors import JobFailed
from training.command import Interrupted
from training.run.mlflow_log import FILE, ending, mlflow_log


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store in a folder, which MLflow keeps for tests such as this."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", at := (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "streets")
    return at


@pytest.mark.wide
def test_a_run_is_logged_and_goes_on(tmp_path: Path, uri: str) -> None:
    """Settings, tags, figures of each step, files and the end; a break does not make a second."""
    import mlflow

    model_dir = tmp_path / "jobs" / "first" / "model"
    model_dir.mkdir(parents=True)
    settings, tags = {"seed": 3, "split": "train"}, {"dataset_id": "abc", "commit": None}
    log = mlflow_log(model_dir, 0, settings, tags)
    assert log is not None
    log.metrics(10, {"loss": 2.5, "learning_rate": 0.001})
    with pytest.raises(Interrupted), ending(log):
        raise Interrupted("training", "ended by SIGTERM")
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("streets")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "KILLED"
    (model_dir / "run.json").write_text("{}")
    again = mlflow_log(model_dir, 10, settings, tags)
    assert again is not None
    with ending(again, model_dir / "run.json", model_dir / "none.json"):
        again.metrics(20, {"loss": 1.5})
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.status, run.info.run_name) == ("FINISHED", "first")
    assert run.data.params == {"seed": "3", "split": "train"}
    assert run.data.tags["framesift.dataset_id"] == "abc"
    assert "framesift.commit" not in run.data.tags
    history = client.get_metric_history(run.info.run_id, "loss")
    assert [(one.step, one.value) for one in history] == [(10, 2.5), (20, 1.5)]
    assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["run.json"]
    new = mlflow_log(model_dir, 0, settings, tags)
    with pytest.raises(JobFailed), ending(new):
        raise JobFailed("training", "the loss is not finite")
    found = client.search_runs([experiment.experiment_id])
    assert sorted(one.info.status for one in found) == ["FAILED", "FINISHED"]


def test_a_training_does_without(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refusal by MLflow is logged once and ends nothing; no variable, no log."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    assert mlflow_log(tmp_path, 0, {}, {}) is None
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    assert mlflow_log(tmp_path, 0, {}, {}) is None
    assert "warning: MLflow does not take this run's metrics" in capsys.readouterr().out
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    log = mlflow_log(tmp_path, 0, {}, {})
    assert log is not None
    log.metrics(1, {"no/such//../name": 1.0})
    log.metrics(2, {"loss": 1.0})
    said = capsys.readouterr().out
    assert said.count("warning: ") == 1
    assert (tmp_path / FILE).exists()


def test_no_token_and_no_password_is_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a token with a line end, which a library shows whole, and of a password in the URL."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:secretword@127.0.0.1:9")
    assert mlflow_log(tmp_path, 0, {}, {}) is None
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "secretword\n")
    assert mlflow_log(tmp_path, 0, {}, {}) is None
    told = "".join(capsys.readouterr())
    assert told.count("MLflow does not take this run's metrics") == 2
    assert "127.0.0.1" in told
    assert "secretword" not in told
