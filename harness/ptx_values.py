"""What interpreted PTX (limbd.harness.ptx) computes with more than Python's own operators."""

from __future__ import annotations


def signed(value: int, bits: int) -> int:
    return value - (value >> (bits - 1) << bits)


def byte_permute(a: int, b: int, selector: int) -> int:
    source = (b << 32 | a).to_bytes(8, "little")
    out = 0
    for i in range(4):
        pick = selector >> (4 * i) & 15
        byte = source[pick & 7]
        out |= (0xFF * (byte >> 7) if pick & 8 else byte) << (8 * i)
    return out


def bit_field_insert(a: int, b: int, position: int, length: int, bits: int) -> int:
    mask = ((1 << (length & 255)) - 1) << (position & 255)
    return (b & ~mask | (a << (position & 255)) & mask) & ((1 << bits) - 1)


def bit_field_extract(a: int, position: int, length: int, bits: int, is_signed: bool) -> int:
    position, length = position & 255, length & 255
    if not length:
        return 0
    value = (signed(a, bits) if is_signed else a) >> position
    low = value & ((1 << min(length, bits)) - 1)
    if is_signed:
        return signed(low, min(length, bits)) & ((1 << bits) - 1)
    return low


def logic3(a: int, b: int, c: int, table: int) -> int:
    out, full = 0, 0xFFFFFFFF
    for i in range(8):
        if table >> i & 1:
            out |= (a if i & 4 else a ^ full) & (b if i & 2 else b ^ full) & (c if i & 1 else c ^ full)
    return out
