"""Words of two sizes at any byte of an array, for compiled loops: Numba itself reads single bytes.

Nothing is checked: whoever reads or writes here keeps room behind the last byte. With Numba's
NUMBA_BOUNDSCHECK=1 every access is checked, as Numba then checks those to arrays.
"""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(
    *, cache: bool = False, inline: str = "never", forceinline: bool = False
) -> Callable[[_Function], _Function]:
    """Numba's decorator for a kernel: without Python's lock, and without counting references.

    Counting those to arrays took a quarter of the time; so a kernel makes no arrays.

    Args:
        forceinline: LLVM puts the function into each that calls it: an array is handed over as
            seven words, so that a call with several takes as long as 30 steps.
    """
    decorator: Callable[[_Function], _Function] = nb.njit(  # type: ignore[call-overload]
        nogil=True,
        _nrt=False,
        error_model="numpy",
        cache=cache,
        inline=inline,
        forceinline=forceinline,
        no_cfunc_wrapper=True,
        no_cpython_wrapper=not cache,
    )
    return decorator


def checksum_of(*names: str) -> int:
    """Return the CRC-32 of files in this folder, for a kernel that is compiled from them.

    Numba keeps machine code by the time of the file that a kernel stands in, and by the values
    that it takes from the function around it. With this value a change of another file counts, too.
    """
    sources = b"".join(Path(__file__).with_name(name).read_bytes() for name in names)
    return zlib.crc32(sources)


_CHECKED = bool(getattr(config, "BOUNDSCHECK"))  # noqa: B009
_WORD = ir.IntType(64)


def byte_address(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    """Code for an intrinsic: the address of an array's byte ``at``."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(data, ir.IntType(8).as_pointer()), [at])


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any, bits: int) -> Any:
    byte = byte_address(context, builder, array_type, array, at)
    return builder.bitcast(byte, ir.IntType(bits).as_pointer())


def _loader(bits: int, kind: Any) -> Any:
    @intrinsic
    def load(_typing: Any, array: Any, _at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], values[0], values[1], bits)
            return builder.load(pointer, align=1)

        return kind(array, types.int64), generate

    return load


def _storer(bits: int, kind: Any) -> Any:
    @intrinsic
    def store(_typing: Any, array: Any, _at: Any, _word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], values[0], values[1], bits)
            builder.store(values[2], pointer, align=1)

        return types.void(array, types.int64, kind), generate

    return store


@intrinsic
def _move_bytes(_typing: Any, array: Any, _to: Any, _at: Any, _size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array, to, at, size = values
        target = byte_address(context, builder, signature.args[0], array, to)
        source = byte_address(context, builder, signature.args[0], array, at)
        cgutils.raw_memmove(builder, target, source, size, 1)  # type: ignore[no-untyped-call]

    return types.void(array, types.int64, types.int64, types.int64), generate


@intrinsic
def _prefetch(_typing: Any, array: Any, _at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        byte = byte_address(context, builder, signature.args[0], values[0], values[1])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (byte.type,), kind)
        # To write, to keep in every cache, data.
        builder.call(function, [byte, number(1), number(3), number(1)])

    return types.void(array, types.int64), generate


@intrinsic
def _swapped(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.bswap(values[0])

    return types.uint32(types.uint32), generate


_load64, _load32 = _loader(64, types.uint64), _loader(32, types.uint32)
_move_at: Any = _move_bytes
_store64, _store32 = _storer(64, types.uint64), _storer(32, types.uint32)


@compiled()
def load64(array: Any, at: int) -> Any:
    """Eight bytes of a uint8 array from ``at`` on, the first one lowest, as uint64."""
    if _CHECKED:
        assert 0 <= at <= len(array) - 8
    return _load64(array, at)


@compiled()
def load32(array: Any, at: int) -> Any:
    """Four bytes of a uint8 array from ``at`` on, the first one lowest, as uint32."""
    if _CHECKED:
        assert 0 <= at <= len(array) - 4
    return _load32(array, at)


@compiled()
def store64(array: Any, at: int, word: Any) -> None:
    """Write eight bytes into a uint8 array from ``at`` on, the lowest first."""
    if _CHECKED:
        assert 0 <= at <= len(array) - 8
    _store64(array, at, np.uint64(word))


@compiled()
def store32(array: Any, at: int, word: Any) -> None:
    """Write four bytes into a uint8 array from ``at`` on, the lowest first."""
    if _CHECKED:
        assert 0 <= at <= len(array) - 4
    _store32(array, at, np.uint32(word))


@intrinsic
def _first_byte(_typing: Any, _word: Any) -> Any:
    """Position of the first byte of a uint64 that is not zero; 8 where all are zero."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        zeros = builder.cttz(values[0], ir.Constant(ir.IntType(1), 0))
        return builder.lshr(zeros, ir.Constant(_WORD, 3))

    return types.int64(types.uint64), generate


@compiled()
def move(array: Any, to: int, at: int, size: int) -> None:
    """Write a uint8 array's bytes from ``at`` on to where ``to`` is; both may overlap."""
    if _CHECKED:
        assert min(to, at) >= 0
        assert max(to, at) + size <= len(array)
    _move_at(array, to, at, size)


prefetch: Any = _prefetch
"""Ask for a byte of an array that is going to be written; none has to be there."""
first_byte: Any = _first_byte
swapped: Any = _swapped
"""A uint32 with its lowest byte highest, and so on."""
signed: Any = np.int64
