"""Does it fit? The memory that choosing seeds takes, told before it is taken."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from pathlib import Path

from bowerbird.cli.graph_columns import name_parquet_columns
from bowerbird.cli.values import size_text
from bowerbird.crawl.free_memory import free_memory
from bowerbird.model.errors import InputFileError

Wanted = Sequence[tuple[str, ...]]

#: peaks of reading, measured where most names occur once (about half of it where names come again and again): of a row
#: of a text file and of each byte of it; of a row of Parquet and of each byte there, unpacked
_ROW_BYTES, _TEXT_BYTES = 180, 2.4
_PARQUET_ROW_BYTES, _PARQUET_BYTES = 220, 2.3
#: of a page while seeds are chosen, beside the graph: gains, and room to search for two threads; of a link
_PAGE_BYTES, _LINK_BYTES = 260, 4
_HEAD_BYTES = 4 << 20
_PACKED_HEAD_BYTES = 1 << 18
_SIP_BYTES = 64  # packed bytes at a time: what is taken and not yet unpacked would count as used
#: what is read ahead, of each byte of text and at most
_AHEAD_BYTES, _MOST_AHEAD = 4, 1.3e8


def held_memory() -> int:
    """Bytes that this process has; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def need_of(path: Path, wanted: Wanted) -> int:
    """About how many bytes of memory reading these columns of a file takes, from its size and its beginning.

    0 where that cannot be told: reading the file will say what is wrong with it.
    """
    try:
        if path.suffix == ".parquet":
            return _need_of_parquet(path, wanted)
        size = path.stat().st_size
        with path.open("rb") as source:
            if path.suffix in (".gz", ".zst"):
                packed = source.read(_PACKED_HEAD_BYTES)
                text, used = _unpack(packed, path.suffix)
                size = int(size * len(text) / max(used, 1))
            else:
                text = source.read(_HEAD_BYTES)
    except OSError:
        return 0
    lines = max(text.count(b"\n"), 1)
    rows = size * lines / max(len(text), 1)
    return int(rows * _ROW_BYTES + size * _TEXT_BYTES + min(size * _AHEAD_BYTES, _MOST_AHEAD))


def _need_of_parquet(path: Path, wanted: Wanted) -> int:
    from pyarrow import ArrowException, parquet

    try:
        names = set(name_parquet_columns(path, wanted))
        told = parquet.read_metadata(path)
    except (ArrowException, InputFileError):
        return 0
    chunks = [
        told.row_group(group).column(place) for group in range(told.num_row_groups) for place in range(told.num_columns)
    ]
    size = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.split(".")[0] in names)
    ahead = min(size * _AHEAD_BYTES, _MOST_AHEAD)
    return int(told.num_rows * _PARQUET_ROW_BYTES + size * _PARQUET_BYTES + ahead)


def _unpack(head: bytes, suffix: str) -> tuple[bytes, int]:
    """The beginning of what is packed, no more than a few MB of it, and how many packed bytes it was."""
    import io
    import zlib

    try:
        if suffix == ".gz":
            parts, used, rest = b"", 0, head
            while rest and len(parts) < _HEAD_BYTES:  # a file may have several members
                opened = zlib.decompressobj(31)
                parts += opened.decompress(rest, _HEAD_BYTES - len(parts))
                left = opened.unused_data or opened.unconsumed_tail
                used += len(rest) - len(left)
                rest = opened.unused_data
            return parts, used
        import zstandard

        source = io.BytesIO(head)
        reader = zstandard.ZstdDecompressor().stream_reader(source, read_size=_SIP_BYTES, read_across_frames=True)
        parts = b""
        try:
            while len(parts) < _HEAD_BYTES and (part := reader.read(min(1 << 16, _HEAD_BYTES - len(parts)))):
                parts += part
        except zstandard.ZstdError:  # the head ends within a frame
            pass
        return parts, source.tell()
    except zlib.error:
        return b"", 1


def check_files(files: Sequence[tuple[Path, Wanted]], memory_bytes: int | None) -> None:
    """Raises InputFileError where reading these files, all of which are held at once, would not fit."""
    needs = [(need_of(path, wanted), path) for path, wanted in files if path.is_file()]
    need, have = sum(each for each, _ in needs), free_memory() if memory_bytes is None else memory_bytes
    if need > have:
        names = " and ".join(str(path) for _, path in sorted(needs, reverse=True))
        raise InputFileError(
            f"{names}: reading takes about {size_text(need)} of memory, and there is {size_text(have)}. "
            "Use a machine with more, give more by --memory, or leave out links that matter less, such as those of one "
            "page to many others."
        )


def need_to_choose(pages: int, links: int) -> int:
    """About how many bytes choosing takes beside the graph, at least."""
    return _PAGE_BYTES * pages + _LINK_BYTES * links


def left_to_choose(pages: int, links: int, memory_bytes: int | None, held_bytes: int) -> int:
    """Bytes that choosing may take, once the graph is read; raises InputFileError where they are too few."""
    have = free_memory() if memory_bytes is None else memory_bytes - held_bytes
    need = need_to_choose(pages, links)
    if need > have:
        raise InputFileError(
            f"choosing among {pages:,} pages takes about {size_text(need)} of memory beside the graph, and there is "
            f"{size_text(max(have, 0))}. Use a machine with more, give more by --memory, or leave out pages."
        )
    return have
