"""MD5 of 16 or 32 messages side by side, one in each lane of the processor's vectors.

MD5 is one chain of dependent steps, which leaves most of a processor idle, whatever the code.
Sixteen files at once fill its vectors: 0.16 s of CPU a GB with AVX-512 and 0.27 with AVX2, where
OpenSSL takes 1.28 for one after another. A second group of sixteen runs while the steps of the
first wait for each other: 0.08 s. LLVM, which is here with Numba, makes machine code of vectors for
the processor that it finds, in 0.1 s.

Source: https://www.rfc-editor.org/rfc/rfc1321 (MD5), section 3.4
"""

import ctypes
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import binding, ir

GROUP = 16
"""Messages of one group; a kernel has lanes for one group or two."""

MOST_LANES = 2 * GROUP
BLOCK_BYTES = 64
START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
"""The four words that each message begins with."""

Kernel = Callable[[int, int, int], None]
"""Takes the addresses of the state, (4, lanes) uint32, and of as many pointers to messages, and the
number of their blocks, at least 1; changes the state."""

_WORD = ir.IntType(32)
_INDEX = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, GROUP)
_POINTER = ir.IntType(8).as_pointer()
_ADDENDS = tuple(int(abs(math.sin(step + 1)) * 2**32) for step in range(64))
_SHIFTS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))


@cache
def kernel(lanes: int) -> Kernel:
    """The machine code for this processor; it runs without Python's lock.

    Args:
        lanes: `GROUP` or `MOST_LANES`.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly(str(_module(lanes)))
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=2,
        jit=True,
    )
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    code = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
        engine.get_function_address("md5")
    )
    _kept.append(engine)
    return code


_kept: list[Any] = []
"""Owners of the machine code, which would be freed without them."""


def _module(lanes: int) -> ir.Module:
    module = ir.Module("md5")
    kind = ir.FunctionType(ir.VoidType(), [_VECTOR.as_pointer(), _POINTER.as_pointer(), _INDEX])
    function = ir.Function(module, kind, "md5")
    turned = ir.Function(module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fshl.v{GROUP}i32")
    state, pointers, blocks = function.args
    entry, loop, end = (function.append_basic_block(name) for name in ("entry", "loop", "end"))

    code = ir.IRBuilder(entry)
    messages = [code.load(code.gep(pointers, [_INDEX(lane)])) for lane in range(lanes)]
    addresses = [code.gep(state, [_INDEX(index)]) for index in range(4 * lanes // GROUP)]
    first = [code.load(address, align=4) for address in addresses]
    code.branch(loop)

    code = ir.IRBuilder(loop)
    block = code.phi(_INDEX)
    before = [code.phi(_VECTOR) for _ in addresses]
    at = code.mul(block, _INDEX(BLOCK_BYTES))
    words = [_words(code, messages[n : n + GROUP], at) for n in range(0, lanes, GROUP)]
    after = [
        code.add(*pair) for pair in zip(before, _steps(code, before, words, turned), strict=True)
    ]
    following = code.add(block, _INDEX(1))
    block.add_incoming(_INDEX(0), entry)
    block.add_incoming(following, loop)
    for word, phi in enumerate(before):
        phi.add_incoming(first[word], entry)
        phi.add_incoming(after[word], loop)
    code.cbranch(code.icmp_signed("<", following, blocks), loop, end)

    code = ir.IRBuilder(end)
    for address, value in zip(addresses, after, strict=True):
        code.store(value, address, align=4)
    code.ret_void()
    return module


def _words(code: Any, messages: list[Any], at: Any) -> list[Any]:
    """The 16 words of each message's block at ``at``: vectors of the messages' first words, ..."""
    rows = [
        code.load(code.bitcast(code.gep(message, [at]), _VECTOR.as_pointer()), align=1)
        for message in messages
    ]
    half = GROUP // 2
    lower, upper = (
        ir.Constant(_VECTOR, [_WORD(n + m) for n in range(by, by + half) for m in (0, GROUP)])
        for by in (0, half)
    )
    # Four riffles of 256 words turn rows into columns.
    for _ in range(4):
        rows = [
            code.shuffle_vector(rows[n], rows[n + half], which)
            for n in range(half)
            for which in (lower, upper)
        ]
    return rows


def _steps(code: Any, state: list[Any], words: list[list[Any]], turned: Any) -> list[Any]:
    groups = len(words)
    lanes = [tuple(state[group::groups]) for group in range(groups)]
    for step in range(64):
        # Group by group: while a step of one waits for the step before, another one's runs.
        lanes = [
            _step(code, step, group, own, turned) for group, own in zip(lanes, words, strict=True)
        ]
    return [group[word] for word in range(4) for group in lanes]


def _step(
    code: Any, step: int, state: tuple[Any, ...], words: list[Any], turned: Any
) -> tuple[Any, ...]:
    a, b, c, d = state
    if step < 16:
        mixed, word = code.xor(d, code.and_(b, code.xor(c, d))), step
    elif step < 32:
        mixed, word = code.xor(c, code.and_(d, code.xor(b, c))), (5 * step + 1) % 16
    elif step < 48:
        mixed, word = code.xor(b, code.xor(c, d)), (3 * step + 5) % 16
    else:
        mixed, word = code.xor(c, code.or_(b, code.not_(d))), 7 * step % 16
    # What does not wait for the step before comes first.
    total = code.add(code.add(a, code.add(words[word], _splat(_ADDENDS[step]))), mixed)
    shift = _splat(_SHIFTS[step // 16][step % 4])
    return d, code.add(b, code.call(turned, [total, total, shift])), b, c


def _splat(number: int) -> Any:
    return ir.Constant(_VECTOR, [_WORD(number)] * GROUP)
