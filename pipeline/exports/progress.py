"""What an export tells of itself while it writes."""

from collections.abc import Callable

from catalog.values import FrameProgress

Report = Callable[[FrameProgress], None]
