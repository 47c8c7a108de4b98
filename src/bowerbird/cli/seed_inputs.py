"""What seeds are chosen from: a file of links with weights, or what a crawl folder knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bowerbird.cli.graph_columns import read_rows
from bowerbird.cli.seed_memory import Wanted
from bowerbird.cli.values import count_text
from bowerbird.lab.data_files import MOST, SHOWN_BAD_LINES, parse_numbers
from bowerbird.library.arrow_names import Names, keep_rows, load_arrow, number_hosts
from bowerbird.library.column_names import PAGES, SOURCES, TARGETS, WEIGHTS
from bowerbird.model.errors import ConfigError, InputFileError

if TYPE_CHECKING:
    from bowerbird.appraise.frontier.graph import FrontierGraph
    from bowerbird.crawl.seed_study import CrawledPages

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SeedInputs:
    """Pages by number, with links and weights."""

    graph: FrontierGraph
    weight: F64
    unit: str  # of weights
    names_of: Callable[[I64], list[str]]
    sites: Callable[[], npt.NDArray[Any]]  # a number by page
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WeightFiles:
    """Files that say what pages are worth; where there is none every page weighs 1."""

    weights: Path | None = None  # page, weight; pages that it does not name weigh 0
    clicked: Path | None = None  # pages, one a line
    spam: Path | None = None

    def columns(self) -> list[tuple[Path, Wanted]]:
        """The files that there are, with the columns that are read of them."""
        found = ((self.weights, (PAGES, WEIGHTS)), (self.clicked, (PAGES,)), (self.spam, (PAGES,)))
        return [(path, wanted) for path, wanted in found if path is not None]


def read_link_file(links: Path, files: WeightFiles, site_block: int | None) -> SeedInputs:
    """A graph in a file; pages are known by their names, and those that only a weight names have no links."""
    from bowerbird.appraise.frontier.graph import make_graph
    from bowerbird.appraise.seeds.weights import page_weights

    pa = load_arrow()
    read = read_rows(links, (SOURCES, TARGETS), trimmed=True)
    columns = list(read.names)
    notes = list(read.notes)
    amounts: F64 | None = None
    marked: dict[str, int] = {}
    if files.weights is not None:
        names, amounts, told = read_weights(files.weights)
        columns.append(names)
        notes += told
    for kind, path in (("clicked", files.clicked), ("spam", files.spam)):
        if path is not None:
            more = read_rows(path, (PAGES,), trimmed=True)
            marked[kind] = len(columns)
            columns.append(more.names[0])
            notes += more.notes
    joined = pa.concat_arrays([column.dictionary for column in columns]).dictionary_encode()
    numbers, first, rows = np.asarray(joined.indices, dtype=np.int64), 0, []
    for column in columns:
        rows.append(numbers[first : first + len(column.dictionary)][column.rows])
        first += len(column.dictionary)
    count = len(joined.dictionary)
    graph = make_graph(rows[0], rows[1], count)
    itself = int(np.count_nonzero(rows[0] == rows[1]))
    doubles = len(rows[0]) - itself - graph.edges
    if itself or doubles:
        lost = [count_text(itself, "link") + " of pages to themselves"] if itself else []
        lost += [count_text(doubles, "link") + " named more than once"] if doubles else []
        notes.append(f"{links.name}: left out {' and '.join(lost)}.")
    linked = np.zeros(count, np.bool_)
    linked[rows[0]] = linked[rows[1]] = True
    unlinked = count - int(np.count_nonzero(linked))
    if unlinked:
        notes.append(f"{count_text(unlinked, 'page')} with a weight that no link names: seeds of themselves only.")
    if amounts is not None:
        weight, unit = np.bincount(rows[2], weights=amounts, minlength=count).astype(np.float64), "weight"
    else:
        masks = {kind: np.bincount(rows[place], minlength=count) > 0 for kind, place in marked.items()}
        weight, unit = (
            page_weights(count, clicked=masks.get("clicked"), spam=masks.get("spam")),
            "weight" if masks else "pages",
        )
    names = joined.dictionary
    del read, columns, rows, joined
    pa.default_memory_pool().release_unused()

    def find_sites() -> npt.NDArray[Any]:
        return number_hosts(names) if site_block is None else _blocks_of(names, site_block, links)

    def find_names(pages: I64) -> list[str]:
        return list(names.take(pa.array(pages)).to_pylist())

    return SeedInputs(graph, weight, unit, find_names, find_sites, tuple(notes))


def read_weights(path: Path) -> tuple[Names, F64, list[str]]:
    """Pages and their weights, which may be below zero; lines whose weight is no number are left out and told."""
    read = read_rows(path, (PAGES, WEIGHTS), trimmed=True)
    pages, texts = read.names
    values = np.array([_number(text) for text in texts.dictionary.to_pylist()])[texts.rows]
    wrong = ~(np.abs(values) <= MOST)  # NaN is not
    notes = list(read.notes)
    bad = np.flatnonzero(wrong)
    if len(bad):
        shown = ", ".join(repr(texts.dictionary[int(texts.rows[row])].as_py()[:40]) for row in bad[:SHOWN_BAD_LINES])
        told = f"{path}: {len(bad):,} of {len(values):,} weights are no numbers within ±{MOST:g}: {shown}"
        if len(bad) > len(values) / 2:
            raise InputFileError(f"{told}. It must have the columns page, weight, by name or in this order.")
        notes.append(f"{told}; left out.")
    kept = keep_rows(pages, ~wrong)
    if doubles := len(kept.rows) - len(kept.dictionary):
        again = "names a page once more" if doubles == 1 else "name pages once more"
        notes.append(f"{path.name}: {count_text(doubles, 'line')} that {again}: the weights of a page are added up.")
    return kept, values[~wrong], notes


def _number(text: str) -> float:
    """Also one below zero."""
    cell = text.strip()
    below = cell.startswith("-")
    value = float(parse_numbers([cell[1:] if below else cell])[0])
    return -value if below else value


def _blocks_of(names: Any, block: int, links: Path) -> I64:
    """Sites of pages that are known by numbers: so many of them in a row."""
    pa = load_arrow()
    numbers: npt.NDArray[Any]
    try:
        numbers = np.asarray(names.cast(pa.int64()), dtype=np.int64)
    except pa.ArrowException as error:
        texts = names.to_pylist()
        if not all(re.fullmatch("[+-]?[0-9]+", text) for text in texts):
            raise ConfigError(f"--site-block {block}: {links} names pages by other than whole numbers.") from error
        numbers = np.array([int(text) for text in texts], object)  # beyond 64 bits
    found: I64 = np.unique(numbers // block, return_inverse=True)[1].astype(np.int64)
    return found


def read_crawl_folder(root: Path, files: WeightFiles) -> SeedInputs:
    """The crawled pages of a crawl folder, worth what the crawl says; or what files say, by page or by rule."""
    from bowerbird.crawl.page_words import read_urls
    from bowerbird.crawl.seed_study import gather_crawled
    from bowerbird.crawl.settings import load_settings
    from bowerbird.store.folder import CrawlFolder
    from bowerbird.store.repository import Repository

    folder = CrawlFolder(root)
    folder.check()
    settings = load_settings(folder.config)
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        crawled = gather_crawled(repository, settings, repository.connection.now())
        urls = list(read_urls(repository.connection, repository.table.columns.count))
    finally:
        repository.close()
    names = [urls[row] for row in crawled.row.tolist()]
    weight, unit, notes = crawled.weight, crawled.unit, crawled.notes
    if files.weights is not None:
        weight, told = _weights_by_name(files.weights, names)
        unit, notes = "weight", tuple(told)
    elif files.clicked or files.spam:
        weight, told = _weights_by_rule(crawled, files, names)
        unit, notes = "weight", (crawled.notes[0], *told)
    return SeedInputs(
        crawled.graph,
        weight,
        unit,
        lambda pages: [names[page] for page in pages.tolist()],
        lambda: np.unique(crawled.host, return_inverse=True)[1],
        notes,
    )


def _weights_by_rule(crawled: CrawledPages, files: WeightFiles, names: list[str]) -> tuple[F64, list[str]]:
    """1, clicked 10, spam -10, plus links to URLs not fetched yet by their chance; copies count by those links only.

    Without a file of clicked pages, those are the ones that the crawl knows clicks of.
    """
    from bowerbird.appraise.seeds.weights import page_weights

    masks, notes = {"clicked": crawled.clicks > 0, "spam": np.zeros(len(names), np.bool_)}, []
    for kind, path in (("clicked", files.clicked), ("spam", files.spam)):
        if path is not None:
            read = read_rows(path, (PAGES,), trimmed=True)
            rows, told = _number_by_name(path, read.names[0], names)
            masks[kind] = np.bincount(rows[rows >= 0], minlength=len(names)) > 0
            notes += [*read.notes, *told]
    plain = crawled.is_copy & ~masks["spam"]
    by_rule = page_weights(len(names), **masks, uncrawled_links=crawled.uncrawled, uniqueness=crawled.uniqueness)
    return np.where(plain, crawled.uncrawled * crawled.uniqueness, by_rule), notes


def _weights_by_name(path: Path, names: list[str]) -> tuple[F64, list[str]]:
    """Weights of pages of a crawl."""
    pages, amounts, notes = read_weights(path)
    rows, told = _number_by_name(path, pages, names)
    weight = np.bincount(rows[rows >= 0], weights=amounts[rows >= 0], minlength=len(names)).astype(np.float64)
    return weight, [*notes, *told]


def _number_by_name(path: Path, pages: Names, names: list[str]) -> tuple[I64, list[str]]:
    """Which page of a crawl each row names; -1 for other pages, which are counted and told."""
    known = {name: number for number, name in enumerate(names)}
    of_dictionary = np.array([known.get(name, -1) for name in pages.dictionary.to_pylist()], np.int64)
    rows = of_dictionary[pages.rows]
    lost = int(np.count_nonzero(rows < 0))
    if lost == len(rows):
        raise InputFileError(f"{path}: names no page that this crawl has fetched.")
    told = f"{path.name}: {count_text(lost, 'line')} of pages that this crawl has not fetched; left out."
    return rows, [told] if lost else []
