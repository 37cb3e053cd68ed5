"""The learning rate of each step: scaled by workers, warmed up, then a half cosine down.

Source: Goyal et al., "Accurate, Large Minibatch SGD", arXiv:1706.02677 (linear scaling with the
number of workers, gradual warm-up); Loshchilov and Hutter, arXiv:1608.03983 (cosine).
"""

import math

WARM_UP_SHARE = 0.05
"""Share of all steps that the learning rate takes to reach its peak."""
FINAL_SHARE = 0.02
"""Share of the peak that is left at the last step."""
COURSE = f"warm-up {WARM_UP_SHARE}, half cosine to {FINAL_SHARE}"
"""The course in words, by which runs are told apart."""


def learning_rate_at(step: int, max_steps: int, base: float, workers: int) -> float:
    """The learning rate of a step.

    Args:
        step: From 1 to max_steps.
        base: Learning rate of one worker.
        workers: With n of them a step sees n times the frames, and the peak is ``base * n``.

    >>> learning_rate_at(5, 100, 0.001, 2)
    0.002
    """
    peak = base * workers
    warm_up = max(1, round(max_steps * WARM_UP_SHARE))
    if step <= warm_up:
        return peak * step / warm_up
    progress = (step - warm_up) / max(1, max_steps - warm_up)
    return peak * (FINAL_SHARE + (1 - FINAL_SHARE) * 0.5 * (1 + math.cos(math.pi * progress)))
