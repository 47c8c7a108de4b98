"""Make docs/status.svg, the picture in the README, from a real crawl folder: `python docs/picture.py DIR`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 118


def main() -> None:
    """Run the commands and draw what they print."""
    folder = sys.argv[1]
    console = Console(record=True, width=WIDTH, file=Path("/dev/null").open("w", encoding="utf-8"))  # noqa: SIM115
    first = _run("next", folder, "-n", "1").split()
    url = next(word for word in first if word.startswith("http"))
    for command in (("status", folder), ("next", folder, "-n", "5"), ("explain", folder, url)):
        console.print(Text(f"$ bowerbird {' '.join(command)}", style="bold green"))
        for line in _run(*command).splitlines():
            console.print(Text(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"))
        console.print()
    picture = console.export_svg(title="bowerbird")
    # the fonts that rich names lie on somebody's server; any monospace font of the reader's does as well
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    Path(__file__).with_name("status.svg").write_text(picture, encoding="utf-8")


def _run(*arguments: str) -> str:
    done = subprocess.run(["bowerbird", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    main()
