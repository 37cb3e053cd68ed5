"""The forms in which other trainers get a dataset's images and masks."""

from typing import Literal, get_args

TrainingFormat = Literal["mmseg", "ultralytics", "hf", "webdataset", "coco"]

TRAINING_FORMATS: tuple[TrainingFormat, ...] = get_args(TrainingFormat)
