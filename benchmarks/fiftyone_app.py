"""FiftyOne's side of `benchmarks.beside_fiftyone`: its dataset of CamVid, and its app's server.

    .venv-fiftyone/bin/python benchmarks/fiftyone_app.py CAMVID PREDICTIONS PORT

Prints a line of JSON for what was timed, and serves until it is ended. What is between the marks is
what somebody writes who has CamVid's files and FiftyOne's documentation: it is counted.
"""

import inspect
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path


def make_dataset(root: str) -> object:
    """A dataset with labels, pixel counts as fields, and indexes to filter and sort by them."""
    # counted
    import fiftyone as fo
    import numpy as np
    from PIL import Image

    names = ["Sky", "Building", "Pole", "Road", "Pavement", "Tree", "SignSymbol", "Fence", "Car",
             "Pedestrian", "Bicyclist", "Unlabelled"]  # fmt: skip
    dataset = fo.Dataset("camvid", persistent=True)
    dataset.default_mask_targets = dict(enumerate(names))
    samples = []
    for image in sorted(Path(root).glob("images/*/*.jpg")):
        label = Path(root, "labels", image.parent.name, image.stem + ".png")
        pixels = np.bincount(np.asarray(Image.open(label)).ravel(), minlength=len(names))
        sample = fo.Sample(filepath=str(image), tags=[image.parent.name])
        sample["ground_truth"] = fo.Segmentation(mask_path=str(label))
        sample["drive"] = image.stem.split("_")[0]
        for name, number in zip(names, pixels.tolist(), strict=True):
            sample[name.lower()] = number
        samples.append(sample)
    dataset.add_samples(samples)
    for name in names:
        dataset.create_index(name.lower())
    dataset.app_config.color_by = "value"
    dataset.save()
    # end
    return dataset


def evaluate(dataset: object, predictions: str) -> None:
    """Predictions beside the labels, and the confusion matrix that the app shows."""
    # counted
    import fiftyone as fo

    for sample in dataset.iter_samples(autosave=True):  # type: ignore[attr-defined]
        image = Path(sample.filepath)
        label = Path(predictions, "images", image.parent.name, image.stem + ".png")
        sample["prediction"] = fo.Segmentation(mask_path=str(label))
    targets = dataset.default_mask_targets  # type: ignore[attr-defined]
    dataset.evaluate_segmentations("prediction", eval_key="model", mask_targets=targets)  # type: ignore[attr-defined]
    # end


def split(dataset: object) -> None:
    """Divide what a view finds into splits, as tags; frames of a drive land on both sides."""
    # counted
    from fiftyone import ViewField
    from fiftyone.utils.random import random_split

    in_range = (ViewField("car") >= 10_000) & (ViewField("car") <= 20_000)
    riders = dataset.match(in_range & (ViewField("bicyclist") > 0))  # type: ignore[attr-defined]
    random_split(riders, {"train": 0.8, "validation": 0.2})
    # end


def counted_lines(function: Callable[..., object]) -> int:
    """Lines of code between the marks of a function."""
    lines = [line.strip() for line in inspect.getsource(function).splitlines()]
    return sum(bool(line) for line in lines[lines.index("# counted") + 1 : lines.index("# end")])


def main() -> None:
    """Make the dataset, and serve."""
    root, predictions, port = sys.argv[1:]
    began = time.perf_counter()
    import fiftyone as fo

    imported = time.perf_counter()
    dataset = make_dataset(root)
    made = time.perf_counter()
    split(dataset.clone())  # type: ignore[attr-defined]
    divided = time.perf_counter()
    evaluate(dataset, predictions)
    evaluated = time.perf_counter()
    fo.launch_app(dataset, remote=True, port=int(port), address="127.0.0.1")
    timed = {
        "import_s": imported - began,
        "dataset_s": made - imported,
        "dataset_lines": counted_lines(make_dataset),
        "split_s": divided - made,
        "split_lines": counted_lines(split),
        "evaluate_s": evaluated - divided,
        "evaluate_lines": counted_lines(evaluate),
    }
    print("timed", json.dumps(timed), flush=True)
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
