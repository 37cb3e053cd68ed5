"""The arrays of an .npz file as `numpy.savez` writes it, and nothing that is larger than the file.

numpy.load allocates what a header inside says, and inflates what is compressed.
"""

import math
import os
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from training.folder_file import opened_folder_file

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def stored_arrays(folder: Path, name: str, only: str | None = None) -> dict[str, npt.NDArray[Any]]:
    """Every array by its name; or that alone which is named so.

    Raises:
        ValueError: It is no such file, or says to hold more than it does.
    """
    with opened_folder_file(folder, name) as file:
        file_bytes = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                if any(info.compress_size > file_bytes for info in archive.infolist()):
                    raise ValueError("says to hold more than it does")
                return {
                    _name(info): _array(archive, info)
                    for info in archive.infolist()
                    if only in (None, _name(info))
                }
        except (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError) as error:
            raise ValueError(str(error)) from error


def _name(info: zipfile.ZipInfo) -> str:
    return info.filename.removesuffix(".npy")


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{info.filename[:40]} is compressed")
    with archive.open(info) as member:
        shape, by_columns, dtype = _header(member)
        size = math.prod(shape) * dtype.itemsize
        content = member.read(size + 1)
    if dtype.hasobject or by_columns or len(content) != size:
        raise ValueError(f"{info.filename[:40]} is no array of {dtype} {shape}")
    return np.frombuffer(content, dtype).reshape(shape)


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(member)  # type: ignore[no-untyped-call]
    if version not in _HEADERS:
        raise ValueError(f"format {version} of numpy's")
    shape, by_columns, dtype = _HEADERS[version](member)  # type: ignore[no-untyped-call]
    return shape, by_columns, dtype
