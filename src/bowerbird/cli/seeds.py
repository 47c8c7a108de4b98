"""Where to start: `seeds`, from a graph of your own or from a crawl."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import bowerbird
from bowerbird.cli.engine import Engine, engine_options, local_path
from bowerbird.cli.values import count_text, echo_json, plain_text
from bowerbird.model.errors import ConfigError, InputFileError

if TYPE_CHECKING:
    from bowerbird.appraise.seeds.methods import SeedOptions
    from bowerbird.appraise.seeds.problem import Bound, Choice, SeedProblem
    from bowerbird.cli.seed_inputs import SeedInputs, WeightFiles

METHODS = ("greedy", "maxweight", "maxout", "maxscc", "rootscc", "pagerank", "outdegree", "random")
FILES = ("--links", "--weights", "--clicked", "--spam")
FILE = click.Path(path_type=Path)
GB = 1e9


@click.command("seeds")
@click.option(
    "--links",
    required=True,
    metavar="PATH",
    help="Links: source, target. TSV, CSV (.gz, .zst) or Parquet; or a crawl folder.",
)
@click.option("--weights", default=None, metavar="FILE", help="page, weight; others weigh 0. Without it pages weigh 1.")
@click.option("--clicked", default=None, metavar="FILE", help="Pages, one a line, that weigh 10 instead of 1.")
@click.option("--spam", default=None, metavar="FILE", help="Pages, one a line, that weigh -10 instead of 1.")
@click.option("-k", "k", type=click.IntRange(min=1), default=10, show_default=True, help="How many seeds.")
@click.option(
    "--hops",
    type=click.IntRange(1, 120),
    default=5,
    show_default=True,
    help="A seed covers what is so many links away.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="greedy",
    show_default=True,
    metavar="NAME",
    help=f"One of {', '.join(METHODS)}.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 120),
    default=2,
    show_default=True,
    help="Links that maxweight, maxscc and rootscc look ahead.",
)
@click.option(
    "--per-site",
    is_flag=True,
    help="Every site for itself: k seeds a site on average, shared out by the value of its pages.",
)
@click.option("--equal", is_flag=True, help="With --per-site: k seeds for each site alike.")
@click.option(
    "--site-block",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Sites are N pages in a row, of pages known by numbers.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=64),
    default=None,
    help="greedy: choose by so many targets drawn by weight; without it as the size of the graph asks for.",
)
@click.option("--no-bound", is_flag=True, help="Do not work out how good the best seeds could be.")
@click.option("--memory", "memory_gb", type=click.FloatRange(min=0), default=None, help="GB to use; all that is free.")
@click.option("--out", "out", type=FILE, default=None, help="Write the seeds to a file, one a line, as `init` reads.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For what is drawn by lot.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
@engine_options
def seeds_command(
    links: str,
    weights: str | None,
    clicked: str | None,
    spam: str | None,
    k: int,
    hops: int,
    method: str,
    depth: int,
    per_site: bool,
    equal: bool,
    site_block: int | None,
    samples: int | None,
    no_bound: bool,
    memory_gb: float | None,
    out: Path | None,
    seed: int,
    as_json: bool,
    engine: Engine,
) -> None:
    """Choose the pages to start a crawl from: those that cover most within so many links.

    The graph is a file of links between pages of any names, or a crawl folder: then its crawled pages, worth the clicks
    that searchers gave them, where there are any, and what their links to pages not fetched yet may bring.

    Shown for each seed: the pages and the value that it adds to those before it, and what is covered so far; all of it
    counted, whatever it was chosen by. Below, the bound: no choice of as many seeds covers more. `greedy` counts
    exactly where the graph allows that, and goes by a sample of pages where it does not; the bound then holds with 99%
    confidence. With weights below 0, greedy takes no seed that lowers the value, and the bound is on what is above 0.

    `bowerbird init DIR --seeds-file FILE` takes what --out wrote.

    --engine spark has greedy by a sample, for graphs of any size (docs/scale.md); it draws other lots than the local
    engine does.
    """
    from bowerbird.appraise.seeds.methods import SeedOptions
    from bowerbird.appraise.seeds.problem import SeedProblem
    from bowerbird.cli.seed_inputs import WeightFiles
    from bowerbird.cli.seed_memory import held_memory

    if equal and not per_site:
        raise ConfigError("--equal: says how seeds are shared out among sites. Add --per-site.")
    if site_block is not None and not per_site:
        raise ConfigError("--site-block: says what a site is. Add --per-site.")
    if memory_gb is not None and not 0 <= memory_gb < 1e9:  # NaN is within every range
        raise ConfigError(f"--memory {memory_gb}: must be a number of GB.")
    if engine.is_spark:
        _refuse_local(method, per_site, memory_gb, no_bound)
    if weights is not None and (clicked or spam):
        raise ConfigError("--weights says what every page is worth: leave out --clicked and --spam.")
    if out is not None:
        _check_out(out, [Path(path) for path in (links, weights, clicked, spam) if path is not None])
    words = ["bowerbird", "seeds", "--links", links, "-k", str(k), "--hops", str(hops), "--method", method]
    for option, path in (("--weights", weights), ("--clicked", clicked), ("--spam", spam)):
        words += [option, path] if path is not None else []
    words += ["--depth", str(depth)] if method in ("maxweight", "maxscc", "rootscc") else []
    words += ["--per-site"] * per_site + ["--equal"] * equal
    words += ["--site-block", str(site_block)] if site_block else []
    words += ["--samples", str(samples)] if samples else []
    words += ["--no-bound"] * no_bound
    words += ["--memory", f"{memory_gb:g}"] if memory_gb is not None else []
    words += ["--seed", str(seed), *engine.words()]
    if engine.is_spark:
        from bowerbird.cli.spark_seeds import seeds_by_spark

        data = seeds_by_spark(engine, (links, weights, clicked, spam), k, hops, samples, seed)
        _give(data, as_json, out, shlex.join(words))
        return
    graph, *rest = (
        local_path(path, option) for path, option in zip((links, weights, clicked, spam), FILES, strict=True)
    )
    assert graph is not None
    files = WeightFiles(*rest)
    began = time.perf_counter()
    memory_bytes = None if memory_gb is None else int(memory_gb * GB)
    held_before = held_memory()
    inputs = _read(graph, files, site_block, memory_bytes)
    _check(inputs, graph, k, per_site)
    click.echo(
        f"{count_text(inputs.graph.count, 'page')}, {count_text(inputs.graph.edges, 'distinct link')} "
        f"(read in {time.perf_counter() - began:.1f} s).",
        err=True,
    )
    for note in inputs.notes:
        click.echo(plain_text(note), err=True)
    options = SeedOptions(
        depth, samples, _memory_for_samples(inputs, memory_bytes, held_before), rng=np.random.default_rng(seed)
    )
    if no_bound:
        options = replace(options, rounds=0)
    problem = SeedProblem(inputs.graph, inputs.weight, hops)
    began = time.perf_counter()
    choice, bound, sites = _choose(problem, inputs, k, method, options, per_site, equal, not no_bound)
    took_s = time.perf_counter() - began
    data = _as_data(problem, inputs, choice, bound, method, took_s, sites)
    _give(data, as_json, out, shlex.join(words))


def _refuse_local(method: str, per_site: bool, memory_gb: float | None, no_bound: bool) -> None:
    """What --engine spark does not have."""
    if method != "greedy":
        raise ConfigError(f"--method {method}: --engine spark has greedy only.")
    for option, value in (("--per-site", per_site), ("--memory", memory_gb is not None), ("--no-bound", no_bound)):
        if value:
            raise ConfigError(f"{option}: is not for --engine spark. Leave it out.")


def _give(data: dict[str, Any], as_json: bool, out: Path | None, command: str) -> None:
    if as_json:
        echo_json(data | {"command": command, "version": bowerbird.__version__})
    else:
        _show(data)
    if out is not None:
        _write(out, data, command)
        click.echo(f"{out}: {count_text(len(data['seeds']), 'seed')}.", err=True)


def _memory_for_samples(inputs: SeedInputs, memory_bytes: int | None, held_before: int) -> int:
    """All that was told, less what reading left; of what happens to be free, half."""
    from bowerbird.appraise.seeds.sample import MEMORY_BYTES
    from bowerbird.cli.seed_memory import held_memory, left_to_choose

    held = max(held_memory() - held_before, 0)
    have = left_to_choose(inputs.graph.count, inputs.graph.edges, memory_bytes, held)
    return int(min(MEMORY_BYTES, have if memory_bytes is not None else have / 2))


def _check_out(out: Path, inputs: Sequence[Path]) -> None:
    """Before the work, and not after it."""
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path) and not out.is_dir():
            raise ConfigError(f"--out {out}: is a file that is read, and would be overwritten. Name another place.")
    if out.is_dir():
        raise ConfigError(f"--out {out}: is a folder. Name a file.")
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.parent}. Make it, or name another place.")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise ConfigError(f"--out {out}: may not be written. Name another place.")


def _read(links: Path, files: WeightFiles, site_block: int | None, memory_bytes: int | None) -> SeedInputs:
    from bowerbird.cli.seed_inputs import read_crawl_folder, read_link_file
    from bowerbird.cli.seed_memory import check_files
    from bowerbird.library.column_names import SOURCES, TARGETS

    if links.is_dir() and site_block is not None:
        raise ConfigError("--site-block: a crawl folder has hosts for sites. Leave it out.")
    if links.is_dir():
        return read_crawl_folder(links, files)
    check_files([(links, (SOURCES, TARGETS)), *files.columns()], memory_bytes)
    return read_link_file(links, files, site_block)


def _check(inputs: SeedInputs, links: Path, k: int, per_site: bool) -> None:
    count = inputs.graph.count
    if k > count and not per_site:
        raise ConfigError(f"-k {k}: {links} has only {count_text(count, 'page')}. Ask for fewer seeds.")
    if not (inputs.weight > 0).any():
        raise ConfigError(f"{links}: no page has a weight above 0, so nothing is worth covering. Look at the weights.")


def _choose(
    problem: SeedProblem,
    inputs: SeedInputs,
    k: int,
    method: str,
    options: SeedOptions,
    per_site: bool,
    equal: bool,
    bounded: bool,
) -> tuple[Choice, Bound | None, int]:
    """Seeds, the bound on the best, and in how many sites."""
    from bowerbird.appraise.seeds.methods import bound_optimum, choose_seeds
    from bowerbird.appraise.seeds.sites import apportion, choose_by_site, site_importance

    if not per_site:
        choice = choose_seeds(problem, k, method, options)
        return choice, bound_optimum(problem, k, choice, options) if bounded else None, 0
    site = inputs.sites()
    sizes = np.bincount(site)
    if equal:
        seeds = np.minimum(np.full(len(sizes), k), sizes)
    else:
        seeds = apportion(site_importance(problem.weight, site, len(sizes)), k * len(sizes), sizes)
    choice = choose_by_site(problem, site, seeds, method, options, bounded=bounded)
    return choice, choice.bound, len(sizes)


def _as_data(
    problem: SeedProblem,
    inputs: SeedInputs,
    choice: Choice,
    bound: Bound | None,
    method: str,
    took_s: float,
    sites: int,
) -> dict[str, Any]:
    """The one object for programs."""
    pages, value = np.cumsum(choice.pages), np.cumsum(choice.value)
    rows = zip(inputs.names_of(choice.seeds), choice.pages, choice.value, pages, value, strict=True)
    names = ("page", "pages", "value", "covered_pages", "covered_value")
    data: dict[str, Any] = {
        "method": method,
        "hops": problem.hops,
        "pages": problem.graph.count,
        "links": problem.graph.edges,
        "unit": inputs.unit,
        "value": problem.positive,
        "seeds": [dict(zip(names, (row[0], *(number.item() for number in row[1:])), strict=True)) for row in rows],
        "covered_pages": choice.covered_pages,
        "covered_value": choice.covered_value,
        "samples": choice.samples,
        "seconds": round(took_s, 3),
        "notes": list(choice.notes),
    }
    if sites:
        data["sites"] = sites
    if bound is not None:
        data["bound"] = {"value": bound.value, "confidence": bound.confidence}
        if choice.covered_value > 0 and bound.value > 0:
            data["at_least_of_the_best"] = min(choice.covered_value / bound.value, 1.0)
    return data


def _show(data: dict[str, Any]) -> None:
    """For people: rows that a spreadsheet takes too, then lines that begin with #."""
    weighed = data["unit"] != "pages"
    head = ["pages", "covered", *(["value", "covered value"] if weighed else []), "page"]
    lines = ["\t".join(head)]
    for row in data["seeds"]:
        cells = [f"{row['pages']:,}", f"{row['covered_pages'] / data['pages']:.2%}"]
        if weighed:
            cells += [f"{row['value']:,.4g}", f"{row['covered_value'] / data['value']:.2%}"]
        lines.append("\t".join([*cells, plain_text(row["page"])]))
    of_sites = f" in {count_text(data['sites'], 'site')}" if "sites" in data else ""
    covers = "covers" if len(data["seeds"]) == 1 else "cover"
    by = f", by {count_text(data['samples'], 'sample')}" if data["samples"] else ""
    lines.append(
        f"# {data['method']}{by}: {count_text(len(data['seeds']), 'seed')}{of_sites} {covers} "
        f"{data['covered_pages']:,} of {count_text(data['pages'], 'page')} "
        f"({data['covered_pages'] / data['pages']:.2%}) within {count_text(data['hops'], 'link')}; "
        f"{data['seconds']:.1f} s."
    )
    if weighed:
        lines.append(
            f"# Value: {data['covered_value']:,.6g} of {data['value']:,.6g} "
            f"({data['covered_value'] / data['value']:.2%}); unit: {data['unit']}."
        )
    if "bound" in data:
        sure = data["bound"]["confidence"]
        confidence = "" if sure >= 1 else f", with {sure:.0%} confidence"
        told = f"# No choice covers more than {data['bound']['value'] / data['value']:.2%}{confidence}"
        if "at_least_of_the_best" in data:
            told += f": this one has at least {data['at_least_of_the_best']:.1%} of the best"
        lines.append(f"{told}.")
    lines += [f"# {note[0].upper()}{note[1:]}." for note in data["notes"]]
    click.echo("\n".join(lines))


def _write(out: Path, data: dict[str, Any], command: str) -> None:
    """Seeds one a line."""
    names = [plain_text(row["page"]) for row in data["seeds"]]
    head = [f"# {plain_text(command)}", f"# {len(names)} seeds; {data['covered_pages']:,} pages covered"]
    try:
        out.write_text("\n".join([*head, *names, ""]), encoding="utf-8")
    except OSError as error:
        raise InputFileError(f"{out}: cannot be written ({error}). Choose another place.") from error
    if not all("://" in name for name in names):
        click.echo("Not all of the seeds are URLs: `bowerbird init` takes URLs only.", err=True)
