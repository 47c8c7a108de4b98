"""What seeds are chosen from: a file of links with weights, or what a crawl folder knows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bowerbird.cli.graph_columns import PAGES, SOURCES, TARGETS, Names, load_arrow, read_rows
from bowerbird.cli.graph_files import number_hosts
from bowerbird.cli.values import count_text, size_text
from bowerbird.lab.data_files import MOST, SHOWN_BAD_LINES, parse_numbers
from bowerbird.model.errors import ConfigError, InputFileError

if TYPE_CHECKING:
    from bowerbird.appraise.frontier.graph import FrontierGraph

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

WEIGHTS = ("weight", "value", "clicks", "views", "count", "visits", "impact", "score")
#: bytes that a link takes while a file is read, beside its names
_LINK_BYTES = 60
_HEAD_BYTES = 4 << 20


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

    def check(self) -> None:
        """Raises ConfigError for files that exclude each other."""
        if self.weights is not None and (self.clicked or self.spam):
            raise ConfigError("--weights says what every page is worth: leave out --clicked and --spam.")


def free_memory() -> int:
    """Bytes that this process could still take, as far as the system tells."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        if limit != "max":
            found.append(int(limit) - int(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):
        pass
    return max(min(found), 0) if found else 1 << 62


def need_of(path: Path) -> int:
    """About how many bytes of memory reading a file of links takes, from its size and its beginning."""
    size = path.stat().st_size
    if path.suffix == ".parquet":
        from pyarrow import ArrowException, parquet

        try:
            told = parquet.read_metadata(path)
        except (ArrowException, OSError):
            return 0  # reading it will say what is wrong
        size = sum(told.row_group(group).total_byte_size for group in range(told.num_row_groups))
        return int(told.num_rows * _LINK_BYTES + size)
    with path.open("rb") as source:
        head = source.read(_HEAD_BYTES)
    if path.suffix in (".gz", ".zst"):
        text, used = _unpack(head, path.suffix)
        size = int(size * len(text) / max(used, 1))
    else:
        text = head
    lines = max(text.count(b"\n"), 1)
    return int(size * (1.0 + _LINK_BYTES * lines / max(len(text), 1)))


def _unpack(head: bytes, suffix: str) -> tuple[bytes, int]:
    """The beginning of a packed file, and how many packed bytes it was."""
    import zlib

    try:
        if suffix == ".gz":
            opened = zlib.decompressobj(31)
            text = opened.decompress(head)
            return text, len(head) - len(opened.unused_data)
        import zstandard

        text = zstandard.ZstdDecompressor().decompressobj().decompress(head)
        return text, len(head)
    except Exception:  # whatever is wrong with it, reading it will say so
        return b"", 1


def check_memory(path: Path, memory_bytes: int | None) -> None:
    """Raises InputFileError where a file would not fit."""
    if not path.is_file():
        return
    need, have = need_of(path), free_memory() if memory_bytes is None else memory_bytes
    if need > have:
        raise InputFileError(
            f"{path}: reading it takes about {size_text(need)} of memory, and there is {size_text(have)}. "
            "Use a machine with more, or leave out links that matter less, such as those of one page to many others."
        )


def read_link_file(links: Path, files: WeightFiles, site_block: int | None) -> SeedInputs:
    """A graph in a file; pages are known by their names, and those that only a weight names have no links."""
    from bowerbird.appraise.frontier.graph import make_graph
    from bowerbird.appraise.seeds.weights import page_weights

    pa = load_arrow()
    read = read_rows(links, (SOURCES, TARGETS))
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
            more = read_rows(path, (PAGES,))
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

    def find_sites() -> npt.NDArray[Any]:
        return number_hosts(names) if site_block is None else _blocks_of(names, site_block, links)

    return SeedInputs(
        graph, weight, unit, lambda pages: list(names.take(pa.array(pages)).to_pylist()), find_sites, tuple(notes)
    )


def read_weights(path: Path) -> tuple[Names, F64, list[str]]:
    """Pages and their weights, which may be below zero; lines whose weight is no number are left out and told."""
    read = read_rows(path, (PAGES, WEIGHTS))
    pages, texts = read.names
    values = np.array([_number(text) for text in texts.dictionary.to_pylist()])[texts.rows]
    wrong = ~(np.abs(values) <= MOST)  # NaN is not
    notes = list(read.notes)
    bad = np.flatnonzero(wrong)
    # a first line that is no row may name columns in words of its own
    if len(bad) == 1 and bad[0] == 0 and len(values) > 1:
        notes.append(f"{path.name}: its first line is taken for a header.")
    elif len(bad):
        shown = ", ".join(repr(texts.dictionary[int(texts.rows[row])].as_py()[:40]) for row in bad[:SHOWN_BAD_LINES])
        told = f"{path}: {len(bad):,} of {len(values):,} weights are no numbers within ±{MOST:g}: {shown}"
        if len(bad) > len(values) / 2:
            raise InputFileError(f"{told}. It must have the columns page, weight, by name or in this order.")
        notes.append(f"{told}; left out.")
    return _only(pages, ~wrong), values[~wrong], notes


def _only(column: Names, kept: npt.NDArray[np.bool_]) -> Names:
    """Some rows, with the names that are in them."""
    used, rows = np.unique(column.rows[kept], return_inverse=True)
    return Names(column.dictionary.take(load_arrow().array(used)), rows.astype(np.int64))


def _number(text: str) -> float:
    """Also one below zero."""
    cell = text.strip()
    below = cell.startswith("-")
    value = float(parse_numbers([cell[1:] if below else cell])[0])
    return -value if below else value


def _blocks_of(names: Any, block: int, links: Path) -> I64:
    """Sites of pages that are known by numbers: so many of them in a row."""
    pa = load_arrow()
    try:
        numbers = np.asarray(names.cast(pa.int64()), dtype=np.int64)
    except pa.ArrowException as error:
        raise ConfigError(f"--site-block {block}: {links} names pages by other than whole numbers.") from error
    found: I64 = np.unique(numbers // block, return_inverse=True)[1].astype(np.int64)
    return found


def read_crawl_folder(root: Path, files: WeightFiles) -> SeedInputs:
    """The crawled pages of a crawl folder, worth what the crawl says; or a file, in its place."""
    from bowerbird.crawl.page_words import read_urls
    from bowerbird.crawl.seed_study import gather_crawled
    from bowerbird.crawl.settings import load_settings
    from bowerbird.store.folder import CrawlFolder
    from bowerbird.store.repository import Repository

    folder = CrawlFolder(root)
    folder.check()
    if files.clicked or files.spam:
        raise ConfigError(
            "--clicked and --spam: a crawl folder has clicks of its own. --weights FILE can replace them."
        )
    settings = load_settings(folder.config)
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        crawled = gather_crawled(repository, settings, time.time())
        urls = list(read_urls(repository.connection, repository.table.columns.count))
    finally:
        repository.close()
    names = [urls[row] for row in crawled.row.tolist()]
    weight, unit, notes = crawled.weight, crawled.unit, crawled.notes
    if files.weights is not None:
        weight, told = _weights_by_name(files.weights, names)
        unit, notes = "weight", tuple(told)
    return SeedInputs(
        crawled.graph,
        weight,
        unit,
        lambda pages: [names[page] for page in pages.tolist()],
        lambda: np.unique(crawled.host, return_inverse=True)[1],
        notes,
    )


def _weights_by_name(path: Path, names: list[str]) -> tuple[F64, list[str]]:
    """Weights of pages of a crawl; those that name other pages are counted and told."""
    pages, amounts, notes = read_weights(path)
    known = {name: number for number, name in enumerate(names)}
    of_dictionary = np.array([known.get(name, -1) for name in pages.dictionary.to_pylist()], np.int64)
    rows = of_dictionary[pages.rows]
    lost = int(np.count_nonzero(rows < 0))
    if lost == len(rows):
        raise InputFileError(f"{path}: names no page that this crawl has fetched.")
    if lost:
        notes = [*notes, f"{path.name}: {count_text(lost, 'line')} of pages that this crawl has not fetched; left out."]
    weight = np.bincount(rows[rows >= 0], weights=amounts[rows >= 0], minlength=len(names)).astype(np.float64)
    return weight, notes
