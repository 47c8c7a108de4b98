"""The names that stay: the same in the package, for type checkers and in the docs; and the examples run as printed."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bowerbird

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"
EXAMPLES = sorted((ROOT / "examples").glob("*_table.py"))


def run(*words: object, cwd: Path | None = None) -> str:
    """What a program prints; it finds the package that is tested."""
    paths = os.pathsep.join([str(Path(bowerbird.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": paths, "MYPYPATH": paths.rstrip(os.pathsep)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_package_type_checkers_and_docs_have_the_same_names() -> None:
    tree = ast.parse(Path(bowerbird.__file__).read_text(encoding="utf-8"))
    checked = {
        alias.name: node.module.removeprefix("bowerbird.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("bowerbird.")
        for alias in node.names
    }
    loaded = {name: home for home, names in bowerbird._HOMES.items() for name in names}
    listed = re.findall(r"^### (\w+)$", PAGE.read_text(encoding="utf-8").partition("## Every name")[2], re.MULTILINE)
    assert checked == loaded
    assert sorted(loaded) == sorted(listed) == sorted(bowerbird.__all__)
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize("name", bowerbird.__all__)
def test_every_name_is_there_and_says_what_it_is(name: str) -> None:
    found = getattr(bowerbird, name)
    assert name in dir(bowerbird)
    if name != "Table":
        assert found.__name__ == name
        assert found.__doc__
    told = re.search(rf"^### {name}\n\n```python\n.+?\n```\n\n(.+)$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert told


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'bowerbird' has no attribute 'rnak'"):
        _ = bowerbird.rnak


def test_importing_the_package_loads_nothing() -> None:
    told = run("-c", "import bowerbird, sys; print([m for m in sys.modules if m.startswith(('bowerbird.', 'numpy'))])")
    assert told.strip() == "[]"


def blocks(kind: str = "") -> list[str]:
    """The blocks of the page that are marked as code of a kind."""
    parts = re.split(r"^```(\w*)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    opened = zip(parts[1::4], parts[2::4], strict=True)  # every second mark ends a block
    return [block for mark, block in opened if mark == kind]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_printed_as_they_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text in blocks("python")
    assert len(text.splitlines()) <= 30


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_the_ranking_of_a_table_is_what_the_docs_show(library: str) -> None:
    (shown,) = (block for block in blocks() if block.startswith("$ python examples/rank_table.py polars\n"))
    assert run(ROOT / "examples" / "rank_table.py", library) == shown.partition("\n")[2]


def test_the_bids_of_a_table_are_what_the_docs_show() -> None:
    (shown,) = (block for block in blocks() if block.startswith("$ python examples/bid_table.py\n"))
    assert run(ROOT / "examples" / "bid_table.py") == shown.partition("\n")[2]


def test_the_appraiser_of_the_docs_runs() -> None:
    (code,) = (block for block in blocks("python") if "class Shallow" in block)
    assert run("-c", f"{code}\nprint(policy.name)") == "shallow+adaptive\n"


TYPED = """
import bowerbird

class Frame:  # as those of Polars and PyArrow are typed
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

links = Frame()
ranking = bowerbird.rank(links, {"page": ["a"], "clicks": [1]}, crawled=["a"], n=3)
reveal_type(ranking.score)
reveal_type(bowerbird.snapshot_of(links, now=1.0))
reveal_type(bowerbird.bid(bowerbird.snapshot_of(links, now=1.0)).next(1))
reveal_type(bowerbird.make_policy("auto").frontier)
bowerbird.rank(3, links)
bowerbird.rank(links, links, methods="rw")
bowerbird.rnak
"""


def test_a_strict_type_checker_knows_the_names(tmp_path: Path) -> None:
    """The examples and the docs pass it, and it finds mistakes."""
    (appraiser,) = (block for block in blocks("python") if "class Shallow" in block)
    (tmp_path / "own.py").write_text(appraiser, encoding="utf-8")
    (tmp_path / "typed.py").write_text(TYPED, encoding="utf-8")
    settings = "[mypy]\nstrict = True\nfollow_imports = silent\n[mypy-numba.*]\nfollow_imports = skip\n"
    (tmp_path / "mypy.ini").write_text(settings, encoding="utf-8")
    code = "import sys; from mypy.api import run; print(run(sys.argv[1:])[0])"
    told = run("-c", code, *EXAMPLES, "own.py", "typed.py", cwd=tmp_path)
    lines = told.strip().splitlines()
    assert all(line.startswith("typed.py:") for line in lines[:-1]), told
    expected = [
        'Revealed type is "numpy.ndarray[',
        'Revealed type is "bowerbird.model.snapshot.Snapshot"',
        'Revealed type is "bowerbird.appraise.appraiser.Appraiser"',
        'Argument 1 to "rank" has incompatible type "int"',
        'Unexpected keyword argument "methods" for "rank"',
        'Module has no attribute "rnak"',
    ]
    assert len([line for line in lines if ": error:" in line]) == 3, told
    for some in expected:
        assert any(some in line for line in lines), f"{some}\n{told}"
