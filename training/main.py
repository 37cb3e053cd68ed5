"""The training program: ``python -m training.main --exec_mode train|evaluate|predict ...``."""

import os
import signal
import sys
from collections.abc import Sequence

from pipeline.runs.networks import is_own
from pipeline.runs.without_packages import do_without
from training.command import exit_status
from training.freed_memory import keep_freed_memory
from training.run.mlflow_log import URI_VARIABLE
from training.run_settings import TRAINING_MODES, RunSettings, parse_flags


def main(arguments: Sequence[str]) -> int:
    """Run with command line arguments; the exit status."""
    settings = parse_flags(arguments)
    # TensorFlow reads it while it is imported; 2 leaves errors and drops the greetings.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if settings.exec_mode in TRAINING_MODES:  # until it listens
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    if not _runs_code_of_others(settings):
        # TensorFlow and Keras import them where they are installed: a quarter of the CPU that an
        # import takes, and 55 MiB of a validation's 730.
        do_without("pandas", "scipy", "boto3", "botocore", "fsspec")
    keep_freed_memory()
    return exit_status(lambda: _run(settings))


def _runs_code_of_others(settings: RunSettings) -> bool:
    """Return whether the program builds a user's own network, or tells MLflow's client."""
    networks = (settings.model, settings.compare_network)
    own = settings.trust_model or any(is_own(network) for network in networks)
    return own or URI_VARIABLE in os.environ


def _run(settings: RunSettings) -> None:
    if settings.exec_mode in TRAINING_MODES:
        from training.train import train

        train(settings)
    elif settings.exec_mode == "evaluate":
        from training.validate_shard import validate_shard

        validate_shard(settings)
    else:
        from training.predict import predict

        predict(settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
