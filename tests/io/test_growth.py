"""Readers' time against size: a case for every format; small files of each are read."""

import io
import sys
import warnings
from pathlib import Path

import pytest

import placet

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.bench_growth import READERS


def test_every_format_is_timed():
    assert {format for _, _, format, _ in READERS.values()} == set(placet.io.FORMATS)


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_each_kind_is_read(name):
    make, file, format, _ = READERS[name]
    found = []
    for n in (400, 800):
        source = io.BytesIO(make(n))
        source.name = file
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", placet.io.DataWarning)
            found.append(placet.read(source, format, on_error="skip"))
    kinds = {placet.io.FORMATS[format].kind} | ({placet.Comparisons} if format == "preferences" else set())
    assert type(found[0]) in kinds  # stated pairs are votes unless they are all those of an order
    assert str(found[0]) != str(found[1]) or name == "zeros, zst"
