"""Which families of experiments there are, and where their data is.

A family is one module here, NAME_family.py, with an object `FAMILY`; it is imported when it is asked for.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bowerbird.lab as room
from bowerbird.lab.experiment import Family
from bowerbird.model.errors import ConfigError, InputFileError, PolicyError

_ENDING = "_family"
#: where shared data is looked for unless BOWERBIRD_DATA says otherwise, from the working directory
DEFAULT_DATA = Path("../shared/data")
#: a method that `bowerbird crawl` knows under another name; both are understood
OTHER_NAMES = {"in-degree": "indegree", "indegree": "in-degree", "user-centric": "uc-area-online"}
_ADDED: dict[str, Family] = {}


@dataclass(frozen=True, slots=True)
class DataPlace:
    """Where the data of a run is, under the name it has in reports."""

    name: str
    folder: Path


def add_family(family: Family) -> None:
    """Make a family known that has no module here; tests do."""
    _ADDED[family.name] = family


def remove_family(name: str) -> None:
    """Forget one that was added."""
    _ADDED.pop(name, None)


def family_names() -> list[str]:
    """All of them, in order."""
    modules = (found.name for found in pkgutil.iter_modules(room.__path__) if found.name.endswith(_ENDING))
    return sorted({name.removesuffix(_ENDING).replace("_", "-") for name in modules} | set(_ADDED))


def find_family(name: str) -> Family:
    """The family of that name; an unknown one is an error that lists the known."""
    if name in _ADDED:
        return _ADDED[name]
    known = family_names()
    if name not in known:
        raise ConfigError(f"lab: no family {name!r}. Known: {', '.join(known) or 'none'}.")
    module = importlib.import_module(f"{room.__name__}.{name.replace('-', '_')}{_ENDING}")
    family: Family = module.FAMILY
    return family


def choose_policies(family: Family, names: Sequence[str]) -> tuple[str, ...]:
    """Those named, each once and in that order; all of the family's when none is named."""
    chosen: dict[str, None] = {}
    for name in names:
        found = next((each for each in (name, OTHER_NAMES.get(name)) if each in family.policies), None)
        if found is None:
            raise PolicyError(f"lab {family.name}: no policy {name!r}. Known: {', '.join(family.policies)}.")
        chosen[found] = None
    return tuple(chosen) or family.policies


def data_root() -> Path:
    """The folder that holds the known data sets."""
    return Path(os.environ.get("BOWERBIRD_DATA") or DEFAULT_DATA)


def generated_data(family: Family) -> tuple[str, ...]:
    """Data that a family makes itself, by name."""
    names: tuple[str, ...] = getattr(family, "generated", ())
    return names


def find_data(family: Family, on: str) -> DataPlace:
    """A known data set's folder, or any folder; an error says what was looked for, and the remedy.

    What a family generates has no folder: nothing is read from the one that is given.
    """
    known = data_root() / on
    if on in generated_data(family):
        return DataPlace(on, data_root())
    if on in family.known and known.is_dir():
        return DataPlace(on, known)
    given = Path(on).expanduser()
    if given.is_dir():
        return DataPlace(given.resolve().name or on, given)
    if given.is_file():
        raise InputFileError(f"--on {on}: a file. Name the folder that holds it; docs/lab-data.md has the format.")
    if on and known.is_dir():
        return DataPlace(on, known)
    made = generated_data(family)
    names = ", ".join(family.known)
    also = f", say one that is made ({', '.join(made)})" if made else ""
    raise InputFileError(
        f"--on {on}: no such data. Looked for {known} and {given}. Set BOWERBIRD_DATA to the folder that holds "
        f"the known data sets ({names}){also}, or name a folder in the format of docs/lab-data.md."
    )
