"""docs/equations.md and the docstrings say the same: which function computes which published equation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
MAP = ROOT / "docs" / "equations.md"
KEYS_AT_THE_START = re.compile(r"(?:\[[A-Z]+\d*\]\s*)+")
KEY = re.compile(r"\[[A-Z]+\d*\]")


class Line(NamedTuple):
    """One line of the table."""

    key: str
    equation: str
    function: str
    tests: tuple[str, ...]


def read_map(text: str) -> list[Line]:
    """The lines of the first table."""
    lines = []
    for line in text.split("\n## ", maxsplit=1)[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| [") and len(cells) == 4:
            key, equation, function, tests = cells
            lines.append(Line(key, equation, function.strip("`"), tuple(re.findall(r"`([^`]+)`", tests))))
    return lines


def definitions(tree: ast.AST, prefix: str) -> Iterator[tuple[str, str]]:
    """Qualified names of functions, methods and classes, with their docstrings."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{node.name}"
            yield name, ast.get_docstring(node) or ""
            yield from definitions(node, name)


def all_definitions() -> dict[str, str]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found.update(definitions(ast.parse(path.read_text(encoding="utf-8")), module))
    return found


def keys_of(docstring: str) -> set[str]:
    opening = KEYS_AT_THE_START.match(docstring)
    return set(KEY.findall(opening.group())) if opening else set()


def differences(lines: list[Line], docstrings: dict[str, str]) -> list[str]:
    """Everything on which the map and the docstrings do not agree."""
    mapped = {(line.key, line.function) for line in lines}
    marked = {(key, name) for name, docstring in docstrings.items() for key in keys_of(docstring)}
    return [
        *(f"{name} opens with {key} but is not in {MAP.name}" for key, name in sorted(marked - mapped)),
        *(
            f"{MAP.name} names {name}, which does not exist"
            if name not in docstrings
            else f"{MAP.name} has {name} under {key}, but its docstring does not open with that key"
            for key, name in sorted(mapped - marked)
        ),
    ]


LINES = read_map(MAP.read_text(encoding="utf-8"))


def test_the_map_and_the_docstrings_agree() -> None:
    assert differences(LINES, all_definitions()) == []
    assert len(LINES) >= 7


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.key} {line.function.rsplit('.', 1)[-1]}")
def test_every_equation_has_tests_that_exist(line: Line) -> None:
    assert line.equation
    assert line.tests
    for test in line.tests:
        path, _, name = test.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name.startswith("test_")
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


def test_every_key_names_its_source() -> None:
    sources = MAP.read_text(encoding="utf-8").split("\n## Keys")[1]
    assert {line.key for line in LINES} == set(KEY.findall(sources))


def test_a_gap_would_be_noticed() -> None:
    line = Line("[ECHO13]", "g", "bowerbird.a.f", ())
    assert differences([line], {"bowerbird.a.f": "[ECHO13] g"}) == []
    assert differences([], {"bowerbird.a.f": "[ECHO13] [UC05] g"}) == [
        "bowerbird.a.f opens with [ECHO13] but is not in equations.md",
        "bowerbird.a.f opens with [UC05] but is not in equations.md",
    ]
    assert differences([line], {}) == ["equations.md names bowerbird.a.f, which does not exist"]
    assert differences([line], {"bowerbird.a.f": "g, see [ECHO13]"}) == [
        "equations.md has bowerbird.a.f under [ECHO13], but its docstring does not open with that key"
    ]
