"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import bowerbird

ROOMS = ("model", "store", "index", "demand", "quality", "schedule", "appraise", "library")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(bowerbird.__path__, "bowerbird.")
    if module.name.split(".")[1] in ROOMS
]


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    assert sum(bool(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name))) >= 8


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
