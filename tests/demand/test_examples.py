"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import bowerbird.demand

MODULES = [module.name for module in pkgutil.iter_modules(bowerbird.demand.__path__, "bowerbird.demand.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
