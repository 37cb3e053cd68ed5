"""framesift predict."""

from collections.abc import Sequence

from api.cli.commands.jobs.begin import begin_and_follow, refuse_foreign_model
from api.cli.commands.jobs.job_options import Following, JobOptions
from catalog.errors import InvalidInput
from pipeline.runs.orders import Order, Prediction


def _predict(orders: Sequence[Order], how: Following) -> None:
    """Let a model say what is in frames, labelled or not: pictures, and how sure it is.

    Frames of a dataset, or those that the options of a question choose: these are saved as a
    dataset, predict-MODEL.
    """
    for order in orders:
        if (order.dataset is None) == (order.question is None):
            raise InvalidInput(
                "predict: give a dataset, or the options of a question, such as "
                "--where 'labelled = 0' --sample 1000; and not both"
            )
    begin_and_follow(orders, how)


OPTIONS = JobOptions(
    Prediction,
    "NAME, or NAME@VERSION; else the options of a question choose frames.",
    adjust=refuse_foreign_model,
)
predict = OPTIONS.command(_predict)
