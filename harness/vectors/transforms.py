"""Known answers of ntt: the collected cases, several of one size and domain in a frame, and made ones of other fields."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from limbd.harness.inputs import Residues
from limbd.harness.transforms import elements, own_domain
from limbd.harness.vectors import Vectors
from limbd.harness.vectors.collected import read_json
from limbd.harness.vectors.peers import agreed_whole
from limbd.ops.domain import ELEMENT_BYTES
from limbd.ops.ntt import NTT, param_of
from limbd.ops.params.base import Field
from limbd.ops.params.fields import by_name
from limbd.ops.params.layout import from_ints
from limbd.ops.transform_op import OWN_DOMAIN
from limbd.ops.transform_shape import Order

GENERATED = ("generated/ntt_bn254_fr.json.gz", "generated/ntt_bls12_381_fr.json.gz")

# The answers of a collected case: its key, and what asks for it.
ANSWERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ntt", {}),
    ("intt", {"inverse": True}),
    ("coset_ntt", {"coset": True}),
    ("coset_intt", {"inverse": True, "coset": True}),
    ("ntt_bitrev_output", {"order": Order.NR}),
    ("ntt_of_bitrev_input", {"order": Order.RN}),
)

# Fields that nobody collected answers for, and sizes; each batch is three transforms.
MADE_FIELDS = ("goldilocks", "toy_97", "toy_3x2_30_1")
MADE_LOG_N = (0, 1, 2, 5)
MADE_TRANSFORMS = 3

SEED = "limbd ntt vectors 1"


def transform_batches(folder: Path) -> list[Vectors]:
    """Everything that ntt.msgpack holds."""
    collected = (batch for name in GENERATED for batch in _collected(read_json(folder / name)))
    return [*collected, *made_batches()]


def _collected(document: Any) -> Iterator[Vectors]:
    """{field, cases: [{convention, log_n, omega, coset_shift, input, answers by keys of ANSWERS}]}"""
    field = _field(document["field"])

    def domain_of(case: Any) -> tuple[str, int, int, int]:
        return case["convention"], case["log_n"], int(case["omega"], 16), int(case["coset_shift"], 16)

    for (convention, k, omega, shift), group in groupby(sorted(document["cases"], key=domain_of), key=domain_of):
        every = list(group)
        registered = (omega, shift) == (field.omega(k), field.generator)
        own = () if registered else (omega, shift)
        for key, variant in ANSWERS:
            cases = [case for case in every if key in case]
            if not cases:
                continue
            residues = Residues(field.modulus, None, param_of(k, own=not registered, **variant), own)
            yield _batch(
                "generated",
                f"{field.name} {convention} 2^{k} {key}",
                residues,
                _joined(cases, "input"),
                _joined(cases, key),
            )


def made_batches() -> Iterator[Vectors]:
    """Every variant of MADE_FIELDS, with the registered domain and with another."""
    for field in map(_field, MADE_FIELDS):
        rng = random.Random(f"{SEED} {field.name}")
        for k in MADE_LOG_N:
            for key, variant in ANSWERS:
                domain = own_domain(rng, field, k) if rng.randrange(2) else ()
                param = param_of(k, own=bool(domain), **variant)
                x = elements(rng, field.modulus, MADE_TRANSFORMS << k)
                residues = Residues(field.modulus, field if param & OWN_DOMAIN else None, param, domain)
                yield _batch("made", f"{field.name} 2^{k} {key}", residues, x, None)


def _batch(source: str, name: str, residues: Residues, x: list[int], given: list[int] | None) -> Vectors:
    expected = from_ints(agreed_whole(NTT.name, residues, [x], given))
    param, domain = residues.param, residues.domain
    arrays = {"x": from_ints(x)}
    return Vectors(
        NTT.name, source, name, residues.modulus, ELEMENT_BYTES, arrays, expected, residues.field, param, domain
    )


def _joined(cases: list[Any], key: str) -> list[int]:
    return [int(text, 16) for case in cases for text in case[key]]


def _field(name: str) -> Field:
    field = by_name(name)
    if field is None:
        raise ValueError(f"no registered field {name}")
    return field
