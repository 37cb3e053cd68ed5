"""Times and durations as people read them; the exact ones stay within reach.

A time is HTML's ``time``: in UTC as the server writes it, in the reader's zone once scripts run
(static/framesift.js), and exact on hover.
"""

from datetime import datetime

from markupsafe import Markup

_MINUTE_S = 60
_HOUR_S = 60 * _MINUTE_S
_DAY_S = 24 * _HOUR_S

_UNITS = ((2 * _DAY_S, _DAY_S, "days"), (2 * _HOUR_S, _HOUR_S, "hours"),
          (2 * _MINUTE_S, _MINUTE_S, "minutes"))  # fmt: skip
"""Seconds from which a unit is used, seconds of it, its name."""


def moment(iso: str) -> Markup:
    """A time as an element; a text that is none of ISO 8601, as it is."""
    try:
        shown = datetime.fromisoformat(iso)
    except ValueError:
        return Markup.escape(iso)
    text = shown.strftime("%Y-%m-%d %H:%M")
    element = Markup('<time datetime="{}" title="{}">{} UTC</time>')
    return element.format(iso, iso, text)


def duration(seconds: float) -> str:
    """Seconds as days, hours, minutes or seconds, with one decimal below 100."""
    for least, unit_s, name in _UNITS:
        if seconds >= least:
            return f"{_short(seconds / unit_s)} {name}"
    return f"{_short(seconds)} s"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.1f}"
