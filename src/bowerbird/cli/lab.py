"""Commands that compare policies on data: lab list, lab run."""

from __future__ import annotations

import difflib
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from rich.table import Table

from bowerbird.cli.lab_display import data_text, make_console, make_lab_display, show_run
from bowerbird.cli.values import NEW_FOLDER, count_text, echo_json, time_text
from bowerbird.lab.experiment import Family
from bowerbird.lab.registry import choose_policies, data_root, family_names, find_data, find_family, generated_data
from bowerbird.lab.report import Origin, as_data, check_writable, write_results
from bowerbird.lab.runner import ExperimentError, Run, run_experiment
from bowerbird.model.errors import ConfigError, PolicyError

#: results of a run that was stopped go here, in the folder of results: they replace nothing that is whole
STOPPED = "stopped"


@click.group("lab", context_settings={"help_option_names": ["-h", "--help"]})
def lab_group() -> None:
    """Experiments: compare policies on real data, with intervals, plots and a report (docs/lab.md)."""


lab_command = lab_group


@lab_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_command(as_json: bool) -> None:
    """The families of experiments: their data sets, policies and defaults."""
    families = [find_family(name) for name in family_names()]
    root = data_root()
    if as_json:
        echo_json(
            [
                {
                    "family": family.name,
                    "title": family.title,
                    "paper": family.paper,
                    "data": dict.fromkeys(generated_data(family), True)
                    | {name: (root / name).is_dir() for name in family.known},
                    "policies": list(family.policies),
                    "seeds": family.default_seeds,
                    "headline": family.headline,
                }
                for family in families
            ]
        )
        return
    table = Table(box=None, pad_edge=False)
    for name in ("family", "what it measures", "data sets", "policies", "seeds"):
        table.add_column(name, no_wrap=name in ("family", "seeds"))
    for family in families:
        what = f"{family.title} ({family.paper})"
        data = ", ".join((*generated_data(family), data_text(family.known)))
        table.add_row(family.name, what, data, ", ".join(family.policies), str(family.default_seeds))
    make_console().print(table)
    click.echo(
        f"\nData sets are looked for in {root} (BOWERBIRD_DATA). Any folder in their format will do: --on FOLDER."
    )


@lab_group.command("run")
@click.argument("family_name", metavar="FAMILY")
@click.option("--on", required=True, metavar="NAME|FOLDER", help="A known data set, or a folder in its format.")
@click.option("--seeds", type=click.IntRange(min=1), default=None, help="Splits to measure [default: the family's].")
@click.option("--policies", default="", metavar="A,B", help="Only these [default: all of the family's].")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Splits measured at once.")
@click.option("--out", type=NEW_FOLDER, default=None, help="Where results go [default: out/lab/FAMILY-NAME].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def run_command(
    family_name: str,
    on: str,
    seeds: int | None,
    policies: str,
    jobs: int,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure policies on splits of a data set, and write tables, plots and a report.

    Ctrl-C ends it with the splits that are done.
    """
    family, chosen = _choose(family_name, [name.strip() for name in policies.split(",") if name.strip()])
    place = find_data(family, on)
    folder = out or Path("out") / "lab" / f"{family.name}-{place.name}"
    check_writable(folder)
    asked = seeds or family.default_seeds
    words = ["bowerbird", "lab", "run", family.name, "--on", on, "--seeds", str(asked)]
    words += ["--policies", ",".join(chosen)] if chosen != tuple(family.policies) else []
    words += ["--jobs", str(jobs)] if jobs > 1 else []
    where = os.environ.get("BOWERBIRD_DATA")
    origin = Origin(on, (f"BOWERBIRD_DATA={shlex.quote(where)} " if where else "") + shlex.join(words), time.time())
    with _stopped_by_either_signal():
        data = family.load(place.name, place.folder)
        with make_lab_display(family.headline, quiet=quiet, terminal=sys.stderr.isatty()) as display:
            run = run_experiment(family, data, chosen, seeds=asked, jobs=jobs, show=display.show)
    if run.stopped:
        done = f"Stopped: {len(run.splits)} of {count_text(asked, 'split')} done in {time_text(run.seconds)}."
        if run.measured:
            done += f" What they say is in {write_results(run, origin, folder / STOPPED)}"
        click.echo(done, err=True)
        raise KeyboardInterrupt
    _check_measured(run)
    report = write_results(run, origin, folder)
    if as_json:
        echo_json(as_data(run, origin))
    else:
        show_run(run)
    for note in run.data_notes:
        click.echo(f"Data: {note}", err=True)
    if not (as_json and quiet):
        click.echo(f"Report: {report}", err=as_json)


def _choose(family_name: str, policies: Sequence[str]) -> tuple[Family, tuple[str, ...]]:
    """The family and its policies; of a name that is not known, what may have been meant."""
    try:
        family = find_family(family_name)
    except ConfigError as error:
        raise ConfigError(f"{error}{_guess([family_name], family_names())}") from None
    try:
        return family, choose_policies(family, policies)
    except PolicyError as error:
        raise PolicyError(f"{error}{_guess(policies, family.policies)}") from None


def _guess(names: Sequence[str], known: Sequence[str]) -> str:
    """A question for the first name that is not known.

    >>> _guess(["rw", "rw-ge"], ["rw", "rw-eg"]), _guess(["best"], ["rw"])
    (' Did you mean rw-eg?', '')
    """
    wrong = next((name for name in names if name not in known), "")
    close = difflib.get_close_matches(wrong.lower(), known, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _check_measured(run: Run) -> None:
    """Without a figure of any policy there is nothing to report, and earlier results stay."""
    if not run.measured:
        said = " ".join(dict.fromkeys([*run.notes, *run.data_notes]))
        raise ExperimentError(
            f"lab {run.family.name}: nothing was measured of {', '.join(run.policies)} on {run.data.name}; "
            f"earlier results are left as they are. {said or 'Choose other --policies.'}"
        )


@contextmanager
def _stopped_by_either_signal() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
