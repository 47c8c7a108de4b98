"""Static pages to crawl: a generated set of documentation, deterministic, written once and reused.

Pages have what documentation has: navigation, a sidebar, headings, paragraphs with links in them, tables, code with
highlighting, a footer. About a hundred links a page, most of them to other pages of the set. Page i links to its
children 6i+1 ... 6i+6, so that every page can be reached from the index.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np

VERSION = 4
CHILDREN = 6
SECTION_PAGES = 40
#: words of running text a page; with headings, code, tables and anchors this comes to the text of real documentation
#: pages of this size and number of links
DOCUMENTATION_WORDS = 900
PARTS = 8
PARAGRAPHS = 4
SIDEBAR = 34
INLINE = 44
EXTERNAL = 6
TOP_SECTIONS = 12

COMMON = """
the of and to in is for that a it with as be this are on by from can or an if not when which will each other one all may
has use used value only more must its at same before after first also than into where no so then any both between such
many while these most until set given they been over two does there every following new
"""
ONSETS = "b br c ch cl d dr f fl g gr h j k l m n p pl pr qu r s sh sk sl st str t th tr v w z"
VOWELS = "a e i o u ai ea ee io ou oa"
ENDINGS = "n r s t l m nd nt rd st ck ng ment tion er al ic ive ble ty"
KEYWORDS = "def return if else for in while import from class with try except yield async await None True"


def words(rng: np.random.Generator, count: int) -> list[str]:
    """Distinct words by falling frequency: the common ones, then made-up ones, short ones first as in English."""
    onsets, vowels, endings = ONSETS.split(), VOWELS.split(), ENDINGS.split()
    common = COMMON.split()
    found: dict[str, None] = {}
    while len(found) < count - len(common):
        parts = [
            onsets[int(rng.integers(len(onsets)))] + vowels[int(rng.integers(len(vowels)))]
            for _ in range(1 + int(rng.integers(0, 3)))
        ]
        found["".join(parts) + endings[int(rng.integers(len(endings)))]] = None
    length = np.array([len(word) for word in found]) + rng.normal(0.0, 2.0, len(found))
    made_up = np.array(list(found))[np.argsort(length)].tolist()
    return [*common, *made_up]


class Writer:
    """Writes the pages of one set."""

    def __init__(self, pages: int, page_words: int, seed: int = 20) -> None:
        self.pages = pages
        self.page_words = page_words
        self.rng = np.random.default_rng(seed)
        self.vocabulary = np.array(words(self.rng, 20_000))
        weight = 1.0 / (np.arange(len(self.vocabulary)) + 2.7)  # Zipf's law, as Mandelbrot mended it
        self.cumulative = np.cumsum(weight / weight.sum())
        self.rare = self.vocabulary[400:]
        self.boilerplate = self._boilerplate()
        self.titles = [" ".join(self.rng.choice(self.rare, 3)).capitalize() for _ in range(pages)]
        self.paths = self._make_paths()

    def _make_paths(self) -> list[str]:
        sections = [str(word) for word in self.rng.choice(self.rare, self.pages // SECTION_PAGES + 1, replace=False)]
        paths = ["/"]
        taken = {"/"}
        for page in range(1, self.pages):
            slug = self.titles[page].lower().replace(" ", "-")
            path = f"/docs/{sections[page // SECTION_PAGES]}/{slug}.html"
            while path in taken:
                slug += "-" + str(self.rng.choice(self.rare))
                path = f"/docs/{sections[page // SECTION_PAGES]}/{slug}.html"
            taken.add(path)
            paths.append(path)
        return paths

    def prose(self, count: int) -> list[str]:
        """Words by their frequency, with capitals, commas and full stops."""
        rng = self.rng
        picked = self.vocabulary[np.searchsorted(self.cumulative, rng.random(count))].tolist()
        at = 0
        while at < count:
            length = int(rng.integers(6, 26))
            picked[at] = picked[at].capitalize()
            end = min(at + length, count) - 1
            if length > 14:
                middle = min(at + length // 2, end)
                picked[middle] += ","
            picked[end] += "."
            at += length
        return picked

    def page(self, number: int) -> str:
        """The HTML of one page."""
        rng = self.rng
        title = self.titles[number]
        section = number // SECTION_PAGES
        first = section * SECTION_PAGES
        siblings = [p for p in range(first, min(first + SECTION_PAGES, self.pages)) if p != number][:SIDEBAR]
        children = [c for c in range(CHILDREN * number + 1, CHILDREN * number + CHILDREN + 1) if c < self.pages]
        others = rng.integers(0, self.pages, INLINE - len(children)).tolist()
        inline = [*children, *others]
        rng.shuffle(inline)
        return "".join(
            (
                self._head(title),
                self._navigation(),
                self._sidebar(siblings),
                self._article(title, inline, number),
                self._footer(number),
            )
        )

    def _head(self, title: str) -> str:
        about = " ".join(self.prose(18))
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<title>{title} — Handbook</title>\n<meta name="description" content="{about}">\n'
            '<link rel="stylesheet" href="/static/theme.css">\n<link rel="icon" href="/static/icon.svg">\n'
            f"{self.boilerplate}"
            '</head>\n<body class="page wide">\n'
        )

    def _boilerplate(self) -> str:
        """What generators of documentation put into every head: style and a script."""
        rng = self.rng
        rules = "".join(
            f".{rng.choice(self.rare)} .{rng.choice(self.rare)}{{margin:{rng.integers(1, 40)}px;display:block}}\n"
            for _ in range(60)
        )
        code = "".join(
            f"window.{rng.choice(self.rare)}=function(n){{return n&&n.length>{rng.integers(1, 9)}?n:"
            f'"{rng.choice(self.rare)}"}};\n'
            for _ in range(30)
        )
        return f"<style>\n{rules}</style>\n<script>\n{code}</script>\n"

    def _navigation(self) -> str:
        items = "".join(
            f'<li class="nav-item"><a class="nav-link" href="{self.paths[p]}" title="{self.titles[p]}">'
            f"{self.titles[p]}</a></li>\n"
            for p in range(0, min(TOP_SECTIONS * SECTION_PAGES, self.pages), SECTION_PAGES)
        )
        return f'<nav class="top" aria-label="Main"><ul>\n{items}</ul></nav>\n'

    def _sidebar(self, siblings: list[int]) -> str:
        items = "".join(
            f'<li class="toctree-l1"><a class="reference internal" href="{self.paths[p]}" title="{self.titles[p]}">'
            f"{self.titles[p]}</a></li>\n"
            for p in siblings
        )
        return f'<aside class="sidebar"><h3>In this part</h3><ul class="toctree">\n{items}</ul></aside>\n'

    def _article(self, title: str, inline: list[int], number: int) -> str:
        rng = self.rng
        parts = [f'<main role="main"><article><h1 id="top">{title}</h1>\n']
        links = iter(inline)
        for part in range(PARTS):
            heading = " ".join(rng.choice(self.rare, 3)).capitalize()
            parts.append(
                f'<section id="part-{part}"><h2>{heading}<a class="headerlink" href="#part-{part}">¶</a></h2>\n'
            )
            for _ in range(PARAGRAPHS):
                count = self.page_words / (PARTS * PARAGRAPHS)
                parts.append(self._paragraph(int(rng.integers(int(0.6 * count), int(1.4 * count))), links))
            if part % 2 == 0:
                parts.append(self._code())
            if part == 3:
                parts.append(self._table(links))
            parts.append("</section>\n")
        rest = "".join(f'<li class="related"><a href="{self.paths[p]}">{self.titles[p]}</a></li>\n' for p in links)
        external = "".join(
            f'<li><a class="external" rel="noopener" href="https://{rng.choice(self.rare)}.example/{number}/{i}">'
            f"{rng.choice(self.rare)} {rng.choice(self.rare)}</a></li>\n"
            for i in range(EXTERNAL)
        )
        parts.append(f'<h2 id="see-also">See also</h2><ul class="related">\n{rest}{external}</ul></article></main>\n')
        return "".join(parts)

    def _paragraph(self, count: int, links: object) -> str:
        text = self.prose(count)
        target = next(links, None)  # type: ignore[call-overload]  # any iterator of links
        if target is not None:
            text[count // 3] += (
                f' <a class="reference internal" href="{self.paths[target]}" '
                f'title="{self.titles[target]} (in the handbook)">'
                f'<span class="std">{self.titles[target]}</span></a>'
            )
        text[count // 2] = f"<code>{text[count // 2]}</code>"
        text[2 * count // 3] = f"<em>{text[2 * count // 3]}</em>"
        return f"<p>{' '.join(text)}</p>\n"

    def _code(self) -> str:
        rng = self.rng
        lines = []
        for _ in range(int(rng.integers(6, 12))):
            names = rng.choice(self.rare, 3)
            keyword = rng.choice(KEYWORDS.split())
            lines.append(
                f'    <span class="k">{keyword}</span> <span class="n">{names[0]}</span><span class="o">=</span>'
                f'<span class="n">{names[1]}</span><span class="p">(</span><span class="s">"{names[2]}"</span>'
                f'<span class="p">)</span>'
            )
        return '<div class="highlight"><pre>' + "\n".join(lines) + "</pre></div>\n"

    def _table(self, links: object) -> str:
        rng = self.rng
        rows = "".join(
            f"<tr><td><code>{rng.choice(self.rare)}</code></td><td>{rng.integers(1, 9999)}</td>"
            f"<td>{' '.join(self.prose(9))}</td></tr>\n"
            for _ in range(8)
        )
        return (
            f"<table><thead><tr><th>Name</th><th>Size</th><th>Meaning</th></tr></thead><tbody>{rows}</tbody></table>\n"
        )

    def _footer(self, number: int) -> str:
        before, after = max(number - 1, 0), min(number + 1, self.pages - 1)
        return (
            f'<footer><a rel="prev" href="{self.paths[before]}">{self.titles[before]}</a> '
            f'<a rel="next" href="{self.paths[after]}">{self.titles[after]}</a> '
            '<a href="/">Contents</a><p>Written for reading.</p></footer>\n</body>\n</html>\n'
        )


def make_corpus(pages: int, page_words: int = DOCUMENTATION_WORDS) -> Path:
    """The folder with the pages; made on first use, in the temporary folder of the machine."""
    root = Path(tempfile.gettempdir()) / f"bowerbird-bench-pages-{pages}-{page_words}-v{VERSION}"
    if (root / "complete").exists():
        return root
    shutil.rmtree(root, ignore_errors=True)
    writer = Writer(pages, page_words)
    site = root / "site"
    for number, path in enumerate(writer.paths):
        file = site / (path.lstrip("/") or "index.html")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(writer.page(number), encoding="utf-8")
    (site / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n\nUser-agent: bad\nDisallow: /\n")
    (root / "paths.txt").write_text("\n".join(writer.paths))
    (root / "complete").touch()
    return root
