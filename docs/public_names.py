"""The section of docs/python.md that lists every public name, made from the program itself."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from typing import Any

import bowerbird

HEADING = "## Every name\n"
ABOUT = (
    "Made by `make docs` from the program; a test keeps it current. Other names of the package may change at any\n"
    "time, and so may what the studies of a `Snapshot` hold.\n"
)
TABLE = (
    "Table = ArrowTable | DataFrame | Mapping[str, Any]",
    "What a table may be: an object with `__arrow_c_stream__` or `__dataframe__`, or a mapping of names to columns.",
)

#: of classes that have more than others should rely on
STABLE = {"Policy": ("name", "appraise", "explain")}
#: short names within the source, as others would write them
SHORT = {
    "npt.NDArray": "NDArray",
    "npt.ArrayLike": "ArrayLike",
    "F64": "NDArray[np.float64]",
    "FloatArray": "NDArray[np.float64]",
    "I64": "NDArray[np.int64]",
    "IntArray": "NDArray[np.int64]",
    "Rows": "NDArray[np.int64]",
}


def list_names() -> str:
    """Every name of `bowerbird.__all__`, with its signature and what it is."""
    parts = [HEADING, ABOUT]
    for name in sorted(bowerbird.__all__, key=lambda name: (name[0].isupper(), name.lower())):
        lines, about = TABLE if name == "Table" else describe(name, getattr(bowerbird, name))
        parts.append(f"### {name}\n\n```python\n{lines}\n```\n\n{about}\n")
    return "\n".join(parts)


def describe(name: str, what: Any) -> tuple[str, str]:
    """Signatures, one a line, and the first line of the docstring."""
    about = (inspect.getdoc(what) or "").split("\n")[0]
    if inspect.isfunction(what):
        return f"{name}{show_signature(what)}", about
    if issubclass(what, enum.Enum):
        return "\n".join(f"{name}.{member.name} = {member.value}" for member in what), about
    if issubclass(what, Exception):
        return f"class {name}({', '.join(base.__name__ for base in what.__bases__)})", about
    lines = [f"class {name}"]
    if dataclasses.is_dataclass(what):
        lines += [
            f"    {field.name}: {show_type(field.type)}{_default_of(field)}" for field in dataclasses.fields(what)
        ]
    else:
        lines += [f"    {field}: {show_type(kind)}" for field, kind in what.__annotations__.items()]
    for method, found in vars(what).items():
        if method.startswith("_") or method not in STABLE.get(name, (method,)):
            continue
        if isinstance(found, property):
            lines.append(f"    {method} -> {show_type(found.fget.__annotations__['return'])}")
        elif inspect.isfunction(found) or isinstance(found, classmethod | staticmethod):
            lines.append(f"    {method}{show_signature(getattr(what, method))}")
    return "\n".join(lines), about


def show_signature(function: Any) -> str:
    """As it stands in the source, on one line; without self."""
    shown, starred = [], False
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        hint = f": {show_type(parameter.annotation)}" if parameter.annotation is not inspect.Parameter.empty else ""
        default = f" = {_show(parameter.default)}" if parameter.default is not inspect.Parameter.empty else ""
        shown.append(f"{parameter.name}{hint}{default}")
    return f"({', '.join(shown)}) -> {show_type(signature.return_annotation)}"


def show_type(hint: str) -> str:
    """A type as others would write it."""
    return re.sub("|".join(rf"\b{re.escape(name)}\b" for name in SHORT), lambda found: SHORT[found[0]], hint)


def _show(value: object) -> str:
    return f"{type(value).__name__}.{value.name}" if isinstance(value, enum.Enum) else repr(value)


def _default_of(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f" = {_show(field.default)}"
    return f" = {field.default_factory.__name__}()" if field.default_factory is not dataclasses.MISSING else ""
