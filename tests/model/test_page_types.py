"""Kinds of pages by URL and body."""

from __future__ import annotations

import pytest

from bowerbird.model.page_types import PageType, type_pages


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("", PageType.MAIN),
        ("/", PageType.MAIN),
        ("/index.html", PageType.MAIN),
        ("/#top", PageType.MAIN),
        ("/tag/tea", PageType.LISTING),
        ("/en/Tags/tea/", PageType.LISTING),
        ("/tea/page/3", PageType.LISTING),
        ("/en/news/", PageType.LISTING),
        ("/category", PageType.LISTING),
        ("/view?id=3&page=2", PageType.LISTING),
        ("/?q=tea", PageType.LISTING),
        ("/en/news/tea-is-good", PageType.PLAIN),
        ("/2024/05/17/tea.html", PageType.DATED),
        ("/blog/2024-05-17-tea", PageType.DATED),
        ("/19990512/tea", PageType.DATED),
        ("/2024/05/", PageType.DATED),
        ("/isbn-20191299", PageType.PLAIN),  # no such month
        ("/2024/tea", PageType.PLAIN),  # a year alone: reports and releases, that go on changing
        ("/view?id=3", PageType.QUERY),
        ("/view?", PageType.PLAIN),
        ("/view?next=/tag/tea", PageType.QUERY),
        ("/docs/", PageType.DIRECTORY),
        ("/docs/index.php", PageType.DIRECTORY),
        ("/docs/tea.PDF", PageType.FILE),
        ("/docs/tea", PageType.PLAIN),
        ("/docs/tea.html", PageType.PLAIN),
        ("/homepage", PageType.PLAIN),
    ],
)
def test_by_url(path: str, kind: PageType) -> None:
    assert type_pages([f"https://a.example{path}"], ["html"]).tolist() == [kind]


def test_the_body_goes_before_the_url() -> None:
    urls = ["https://a.example/tag/tea"] * 4
    assert type_pages(urls, ["", "text", "feed", "sitemap"]).tolist() == [
        PageType.LISTING,
        PageType.TEXT,
        PageType.SOURCE,
        PageType.SOURCE,
    ]
    assert len(type_pages([], [])) == 0
    with pytest.raises(ValueError, match="shorter"):
        type_pages(urls, ["html"])
