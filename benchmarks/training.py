"""What a training costs: its input, its model, both; more workers; ResNet-50; plain Keras.

    A2D2_ROOT=/path/to/a2d2 .venv/bin/python -m benchmarks.training [rates] [workers] [resnet50]
        [keras] [--size 240x152] [--model small_unet] [--batch-sizes 4] [--processes 1 2 4]
        [--precision auto] [--steps 40] [--rounds 5] [--frames 96] [--image-px 224]

Without a part it measures all four. Frames are those of benchmarks.training_input: real ones where
A2D2_ROOT is set, in the page cache, with a prepared form. Each figure is the median of the rounds;
CPU seconds are all threads' of the process. Each process computes with its share of the cores.

rates      images/s and CPU seconds an image of the input alone (from the prepared form, and
           decoded), of the model alone on one batch, and of both, for each batch size.
workers    both, by that many processes under Horovod, each with its own batch: images/s of all,
           and the efficiency, their share of so many times what the first number of processes
           makes. On one machine's cores processes share what one alone may have. Published: 8 to
           16 GPUs took a training from 1,328 s to 740 s, 1.8 times.
resnet50   images/s of ResNet-50 on synthetic images, as the published baseline takes it with
           tf_cnn_benchmarks (model=resnet50, variable_update=horovod, momentum; batch size 64 and
           use_fp16 there): 7,096 on 8 V100, 13,745 on 16.
keras      CPU seconds of the whole program, as a job with one worker runs it, and under Horovod's
           launcher with one process, against plain Keras (compile, fit, save) with the same
           network, loss, optimizer and frames. Each runs twice, short and three times as long:
           the difference is what a further image takes, and the long run's sum has start, logs,
           checkpoint and model in it.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.training_input import staged_frames
from pipeline.cores import cores, threads_of_process
from pipeline.example_order import examples
from pipeline.manifest import Manifest
from pipeline.prepared.form import prepared_rows
from pipeline.prepared.prepare import prepare
from pipeline.runs.size import Size
from training.input.batches import Batches
from training.input.frame_reader import FrameReader

PARTS = ("rates", "workers", "resnet50", "keras")
REPOSITORY = Path(__file__).resolve().parent.parent
WARM_UP_STEPS = 3
RATE = 1e-3
_KERAS = "plain Keras"


@dataclass(frozen=True)
class Measured:
    """Images, and what they took.

    Attributes:
        images: Of all processes.
        wall_s: Until the last of them was done.
        cpu_s: Of all threads of all processes.
    """

    images: int
    wall_s: float
    cpu_s: float

    @property
    def rate(self) -> float:
        """Images a second."""
        return self.images / self.wall_s

    @property
    def cpu_an_image_s(self) -> float:
        """CPU seconds an image."""
        return self.cpu_s / self.images


def main() -> None:
    """Print the tables of the parts that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[], metavar="part")
    parser.add_argument("--size", type=Size.parse, default=Size.parse("240x152"))
    parser.add_argument("--model", dest="network", metavar="NETWORK", default="small_unet")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[4])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=96)
    parser.add_argument("--image-px", type=int, default=224, help="of ResNet-50's images")
    parser.add_argument("--manifest", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--result", dest="out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if options.out:  # one of several processes, or plain Keras
        _ROLES[options.parts[0]](options)
        return
    print(f"{cores()} cores, load {os.getloadavg()[0]:.1f}, {options.network} at {options.size}")
    with tempfile.TemporaryDirectory() as folder:
        options.manifest = staged_frames(Path(folder), options.frames)
        prepare(options.manifest, options.size)
        for part in options.parts or PARTS:
            _PARTS[part](options, Path(folder))


def _rates(options: argparse.Namespace, _: Path) -> None:
    for batch_size in options.batch_sizes:
        out = _launched("rates", 1, options, batch_size)
        print(f"rates, batches of {batch_size}, {out['precision']}, on {out['device']}")
        rows = {name: Measured(**one) for name, one in out["measured"].items()}
        for name, measured in rows.items():
            _row(name, measured)
        times = rows["input, prepared"].rate / rows["model"].rate
        print(f"  input from the prepared form at {times:.1f} times the model's rate")


def _workers(options: argparse.Namespace, _: Path) -> None:
    _scaling("both", "workers", options)


def _resnet50(options: argparse.Namespace, _: Path) -> None:
    _scaling(f"ResNet-50, {options.image_px} pixels, synthetic", "resnet50", options)


def _scaling(title: str, role: str, options: argparse.Namespace) -> None:
    for batch_size in options.batch_sizes:
        first: float | None = None
        for processes in options.processes:
            out = _launched(role, processes, options, batch_size)
            measured = Measured(**out["measured"])
            if first is None:
                print(f"{title}, {batch_size} a process, {out['precision']}, on {out['device']}")
                first = measured.rate / processes
            efficiency = measured.rate / processes / first
            _row(f"{processes} process(es)", measured, f"  efficiency {100 * efficiency:.0f} %")


def _keras(options: argparse.Namespace, folder: Path) -> None:
    batch_size = options.batch_sizes[0]
    short, long = options.steps, 3 * options.steps
    names = ("a job with one worker", "under the launcher", _KERAS)
    an_image_s: dict[str, list[float]] = {name: [] for name in names}
    whole_s: dict[str, list[float]] = {name: [] for name in names}
    for number in range(options.rounds):
        took_s: dict[str, list[float]] = {name: [] for name in names}
        for steps in (short, long):
            folder_of = {name: folder / f"{number}-{steps}-{at}" for at, name in enumerate(names)}
            one, launched, keras = folder_of.values()
            commands = (
                _our_command(options, one, steps),
                [*_launcher(1), *_our_command(options, launched, steps)],
                _own_command("keras", options, batch_size, steps, keras),
            )
            for name, command in zip(names, commands, strict=True):
                took_s[name].append(_cpu_of(command))
        for name, (less_s, more_s) in took_s.items():
            an_image_s[name].append((more_s - less_s) / ((long - short) * batch_size))
            whole_s[name].append(more_s)
    print(f"CPU, against plain Keras, batches of {batch_size}")
    _against_keras("a further image [ms]", an_image_s, 1e3)
    _against_keras(f"all of {long} steps [s]", whole_s, 1)


def _against_keras(title: str, cpu_s: Mapping[str, Sequence[float]], factor: float) -> None:
    """Print medians over the rounds, and the median and the range of their ratios."""
    keras = cpu_s[_KERAS]
    for name, ours in cpu_s.items():
        times = [one / other for one, other in zip(ours, keras, strict=True)]
        print(
            f"  {title:24}{name:24}{factor * median(ours):9.2f}  "
            f"{median(times):.3f} times ({min(times):.3f} to {max(times):.3f})",
            flush=True,
        )


def _our_command(options: argparse.Namespace, model_dir: Path, steps: int) -> list[str]:
    return [
        sys.executable, "-m", "training.main", "--exec_mode", "train",
        "--manifest", str(options.manifest), "--model_dir", str(model_dir),
        "--model", options.network,
        "--height", str(options.size.height_px), "--width", str(options.size.width_px),
        "--batch_size", str(options.batch_sizes[0]), "--max_steps", str(steps),
        "--augment", "none", "--checkpoint_every", "1000000", "--precision", options.precision,
    ]  # fmt: skip


def _own_command(
    role: str, options: argparse.Namespace, batch_size: int, steps: int, out: Path = Path("-")
) -> list[str]:
    return [
        sys.executable, "-m", "benchmarks.training", role, "--result", str(out),
        "--manifest", str(options.manifest), "--size", str(options.size),
        "--model", options.network,
        "--batch-sizes", str(batch_size), "--precision", options.precision, "--steps", str(steps),
        "--rounds", str(options.rounds), "--image-px", str(options.image_px),
    ]  # fmt: skip


def _launcher(processes: int) -> list[str]:
    return [
        sys.executable, "-P", "-m", "training.local_ranks", "-np", str(processes),
        "-H", f"localhost:{processes}", "--gloo", "--start-timeout", "600",
    ]  # fmt: skip


def _launched(role: str, processes: int, options: argparse.Namespace, batch_size: int) -> Any:
    """What the first of so many processes of a role has measured."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "measured.json"
        command = _own_command(role, options, batch_size, options.steps, out)
        _run([*_launcher(processes), *command])
        return json.loads(out.read_text())


def _run(command: Sequence[str]) -> None:
    ended = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, env=_environment()
    )
    if ended.returncode:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr[-3000:]}")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def _cpu_of(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _row(title: str, measured: Measured, more: str = "") -> None:
    print(
        f"  {title:26}{measured.rate:9.1f} images/s {1e3 * measured.cpu_an_image_s:9.2f} ms CPU an "
        f"image{more}",
        flush=True,
    )


class _Process:
    """One of the processes that measure: its workers, precision and frames."""

    def __init__(self, options: argparse.Namespace) -> None:
        from training.network.gpus import chosen_precision, compile_for_gpus
        from training.run.workers import join_workers, use_threads

        self.options, self.batch_size = options, options.batch_sizes[0]
        self.workers = join_workers(None)
        self.threads = threads_of_process(0, self.workers.local_size)
        use_threads(self.threads)
        self.precision = chosen_precision(options.precision)
        compile_for_gpus()

    def batches(self, *, prepared: bool) -> Batches:
        """This worker's batches, as a training reads them."""
        frames = Manifest.read(self.options.manifest)
        palette = frames.header.dataset_classes
        rows = prepared_rows(frames, self.options.size) if prepared else None
        reader = FrameReader(frames, palette, self.options.size, prepared=rows)
        rank, ranks = self.workers.rank, self.workers.size
        order = examples(len(frames), 0, self.batch_size, rank=rank, ranks=ranks)
        return Batches(reader, order, batch_size=self.batch_size, seed=0, threads=self.threads)

    def step(self) -> Callable[..., Any]:
        """The compiled step of a training with this network."""
        import tensorflow as tf

        from pipeline.runs.precision import MIXED
        from training.input.class_weights import catalogued_pixels, class_weights
        from training.network.gpus import layers_in
        from training.network.loss import weight_of_class_id
        from training.network.loss_scale import LossScale
        from training.network.networks import build_network
        from training.run.train_step import train_step

        frames, size = Manifest.read(self.options.manifest), self.options.size
        tf.keras.utils.set_random_seed(0)
        network = self.options.network
        with layers_in(self.precision):
            model = build_network(
                network, size.height_px, size.width_px, len(frames.header.classes), trusted=network
            )
        optimizer = tf.keras.optimizers.Adam(RATE, global_clipnorm=1.0)
        optimizer.build(model.trainable_variables)
        weights = weight_of_class_id(class_weights(catalogued_pixels(frames)))
        scale = LossScale() if self.precision == MIXED else None
        step: Callable[..., Any] = train_step(model, optimizer, self.workers, weights, scale)
        return step

    def measured(self, one: Callable[[], object]) -> Measured:
        """What the median round of steps took, all processes together."""
        for _ in range(WARM_UP_STEPS):
            one()
        rounds = []
        for _ in range(self.options.rounds):
            self.workers.any(False)  # all begin together
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(self.options.steps):
                one()
            cpu_s = time.process_time() - cpu
            self.workers.any(False)
            rounds.append((time.perf_counter() - wall, cpu_s))
        images = self.options.steps * self.batch_size * self.workers.size
        mean_cpu_s = self.workers.mean(median(cpu_s for _, cpu_s in rounds))
        wall_s = median(wall_s for wall_s, _ in rounds)
        return Measured(images, wall_s, mean_cpu_s * self.workers.size)

    def write(self, measured: Measured | Mapping[str, Measured]) -> None:
        """Hand what was measured to the program that prints it."""
        import tensorflow as tf

        if not self.workers.is_first:
            return
        gpus = tf.config.get_visible_devices("GPU")
        details = [tf.config.experimental.get_device_details(gpu)["device_name"] for gpu in gpus]
        about = {
            "precision": self.precision,
            "device": details[0] if details else f"{self.threads} thread(s)",
            "measured": asdict(measured)
            if isinstance(measured, Measured)
            else {name: asdict(one) for name, one in measured.items()},
        }
        self.options.out.write_text(json.dumps(about))


def _measure_rates(options: argparse.Namespace) -> None:
    process = _Process(options)
    measured: dict[str, Measured] = {}
    for name, prepared in (("input, prepared", True), ("input, decoded", False)):
        batches = process.batches(prepared=prepared)
        measured[name] = process.measured(lambda batches=batches: next(batches))  # type: ignore[misc]
        batches.close()
    step, batches = process.step(), process.batches(prepared=True)
    batch = next(batches)
    measured["model"] = process.measured(lambda: float(step(*batch)))
    measured["both"] = process.measured(lambda: float(step(*next(batches))))
    batches.close()
    process.write(measured)


def _measure_both(options: argparse.Namespace) -> None:
    process = _Process(options)
    step, batches = process.step(), process.batches(prepared=True)
    measured = process.measured(lambda: float(step(*next(batches))))
    batches.close()
    process.write(measured)


def _measure_resnet50(options: argparse.Namespace) -> None:
    """ResNet-50 and images that are drawn once, on the device: no input takes part."""
    process = _Process(options)
    import tensorflow as tf

    from pipeline.runs.precision import MIXED
    from training.network.gpus import layers_in
    from training.network.loss_scale import LossScale
    from training.run.train_step import apply

    side, batch_size, workers = options.image_px, process.batch_size, process.workers
    with layers_in(process.precision):
        model = tf.keras.applications.ResNet50(
            weights=None, input_shape=(side, side, 3), classifier_activation=None
        )
    variables = model.trainable_variables
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    optimizer.build(variables)
    scale = LossScale() if process.precision == MIXED else None
    images = tf.random.uniform((batch_size, side, side, 3))
    labels = tf.random.uniform((batch_size,), maxval=1000, dtype=tf.int32)

    def step() -> Any:
        with tf.GradientTape() as tape:
            logits = tf.cast(model(images, training=True), tf.float32)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
            taken = loss if scale is None else scale.scaled(loss)
        apply(optimizer, workers.tape(tape).gradient(taken, variables), variables, scale)
        return loss

    compiled = tf.function(step)
    process.write(process.measured(lambda: float(compiled())))


def _train_in_keras(options: argparse.Namespace) -> None:
    """The same network, loss, optimizer and frames by compile and fit, from arrays in memory."""
    import tensorflow as tf

    from training.input.class_weights import catalogued_pixels, class_weights
    from training.network.gpus import chosen_precision, layers_in
    from training.network.loss import weight_of_class_id, weighted_cross_entropy
    from training.network.networks import build_network
    from training.run.workers import use_threads

    use_threads(threads_of_process(0, 1))
    frames, size = Manifest.read(options.manifest), options.size
    palette = frames.header.dataset_classes
    reader = FrameReader(frames, palette, size, prepared=prepared_rows(frames, size))
    pairs = [reader.small(row) for row in range(len(frames))]
    examples_of_run = options.steps * options.batch_sizes[0]
    rows = [row for row, _ in zip(cycle(range(len(pairs))), range(examples_of_run), strict=False)]
    images = np.stack([image for image, _ in pairs])[rows]
    labels = np.stack([label for _, label in pairs])[rows]
    tf.keras.utils.set_random_seed(0)
    with layers_in(chosen_precision(options.precision)):
        model = build_network(
            options.network, size.height_px, size.width_px, len(palette), trusted=options.network
        )
    weights = weight_of_class_id(class_weights(catalogued_pixels(frames)))
    model.compile(
        tf.keras.optimizers.Adam(RATE, global_clipnorm=1.0),
        lambda labels, logits: weighted_cross_entropy(labels, logits, weights),
    )
    model.fit(images, labels, batch_size=options.batch_sizes[0], epochs=1, verbose=0)
    model.save_weights(options.out.with_suffix(".weights.h5"))


_PARTS: Mapping[str, Callable[[argparse.Namespace, Path], None]] = {
    "rates": _rates,
    "workers": _workers,
    "resnet50": _resnet50,
    "keras": _keras,
}
_ROLES: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "rates": _measure_rates,
    "workers": _measure_both,
    "resnet50": _measure_resnet50,
    "keras": _train_in_keras,
}


if __name__ == "__main__":
    main()
