"""AFM filesets that a dataset is brought into, as users name them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.errors import InvalidInput

TARGET = "[SOURCE=]afm:FILESYSTEM/FILESET"
"""Format of a target; `afmcos:` in place of `afm:` where mmafmcosctl fetches the objects."""

_SCHEME, _COS_SCHEME = "afm:", "afmcos:"
# Names of file systems and filesets have these characters; so no shell reads anything into them.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")


@dataclass(frozen=True, slots=True)
class Fileset:
    """An AFM fileset."""

    device: str
    """Its file system, as mmafmctl takes it."""
    name: str
    is_cos: bool = False
    """Whether objects of a cloud object storage come into it by mmafmcosctl."""

    def __str__(self) -> str:
        return f"{_COS_SCHEME if self.is_cos else _SCHEME}{self.device}/{self.name}"


def filesets_of(targets: Sequence[str], sources: Sequence[str]) -> Mapping[str, Fileset]:
    """The fileset of each source: its own target's, else that of the target for all sources.

    Args:
        targets: As TARGET shows; one without a source is for all that have none of their own.

    Raises:
        InvalidInput: A target is none, names another source, or a source has none or two.
    """
    chosen: dict[str, Fileset] = {}
    for target in targets:
        source, equals, rest = target.rpartition("=")
        is_cos = rest.startswith(_COS_SCHEME)
        scheme = _COS_SCHEME if is_cos else _SCHEME
        device, slash, name = rest.removeprefix(scheme).partition("/")
        is_named = rest.startswith(scheme) and slash and (source or not equals)
        if not is_named or not _NAME.fullmatch(device) or not _NAME.fullmatch(name):
            raise InvalidInput(
                f"target {target}: expected {TARGET}, such as afm:fs1/a2d2_cos or "
                "cos=afm:fs1/a2d2_cos; afmcos: in place of afm: for mmafmcosctl"
            )
        if source and source not in sources:
            raise InvalidInput(
                f"target {target}: the dataset has no files of source '{source}'; it has those of "
                f"{', '.join(sources)}"
            )
        if source in chosen:
            raise InvalidInput(f"target {target}: {source or 'all sources'} has a target already")
        chosen[source] = Fileset(device, name, is_cos)
    without = [source for source in sources if source not in chosen]
    if without and "" not in chosen:
        raise InvalidInput(
            f"no target for source {', '.join(without)}; expected one for all, or for each"
        )
    return {source: chosen.get(source) or chosen[""] for source in sources}
