from __future__ import annotations

from bowerbird.page.html import parse_html
from bowerbird.page.sieve import sieve_html

LONG = "Bowerbirds collect blue things and arrange them before their bowers. " * 10


def read(html: str) -> str:
    return parse_html(html.encode(), "utf-8").text


def test_blocks_are_separated_and_inline_tags_are_not() -> None:
    assert read("<ul><li>one</li><li>two</li></ul><p>H<sub>2</sub>O<br>s<b>ea</b></p>") == "one two H2O sea"
    assert read("<table><tr><td>a</td><td>b</td></tr></table>") == "a b"
    assert read("a <a href=x> link </a> b") == "a link b"


def test_boilerplate_is_left_out() -> None:
    html = f"""<header>Site</header><nav>Menu</nav><div role=navigation>Crumbs</div>
    <div role="banner">Top</div>
    <p>{LONG}</p><aside>Aside</aside><form>Form</form><div hidden>Hidden</div><p hidden>Para</p>
    <noscript>Noscript</noscript><template>Template</template><svg><text>Svg</text></svg>
    <div role=search>Search</div><footer>Foot</footer>"""
    assert read(html) == LONG.strip()


def test_main_is_preferred_when_it_holds_a_good_share() -> None:
    assert read(f"<div>Elsewhere</div><main>{LONG}</main>") == LONG.strip()
    assert read(f"<div>Elsewhere</div><div role=main>{LONG}</div>") == LONG.strip()
    assert read(f"<div>Elsewhere</div><article>{LONG}</article>") == LONG.strip()
    assert read(f"<div>{LONG}</div><main>Little</main>").startswith("Bowerbirds")


def test_several_articles_are_a_list() -> None:
    assert read(f"<h1>List</h1><article>{LONG}</article><article>{LONG}</article>").startswith("List Bower")


def test_the_heading_of_an_article_is_text() -> None:
    assert read(f"<article><header><h1>Title</h1></header>{LONG}</article>").startswith("Title Bower")


def test_a_form_around_the_whole_page_is_not_boilerplate() -> None:
    assert read(f"<form><div>{LONG}</div></form><p>{'More words. ' * 20}</p>").startswith("Bowerbirds")


def test_falls_back_to_all_text_when_too_little_is_left() -> None:
    assert "Bowerbirds" in read(f"<header>{LONG}</header><p>tiny</p>")
    assert read("<nav>only this</nav>") == "only this"


def test_hidden_inline_elements_end_where_they_end() -> None:
    assert read(f"{LONG}<span hidden>secret <b>x</b></span><p>after</p>") == f"{LONG}after"


def test_every_kind_of_white_space_is_one_space() -> None:
    assert read("a\t\n b\u00a0\u00a0c&nbsp; &nbspd&#160;&#x20;e\u3000f&emsp;&Tab;g") == "a b c d e f g"
    assert read("a&#65;b&amp;c&copy;") == "aAb&c©"


def test_the_sieve_keeps_what_is_told_by_attributes() -> None:
    sieved = sieve_html(b'<div class="x" ROLE=main data-y=\'>\'><a rel=nofollow id=t href="a>b">x</a></div>')
    assert sieved.html == b'<div ROLE=main><a rel=nofollow href="a>b">x</a> </div>'
    assert sieved.text_bytes == 1


def test_the_sieve_drops_what_the_standard_drops() -> None:
    assert sieve_html(b"a<!-- b --!>c<!d>e<?f>g</ h>i<j").html == b"acegi"
    assert sieve_html(b"<script>a</scripts>b</script >c").html == b"c"
    assert sieve_html(b"1 < 2 <3").html == b"1 < 2 <3"
    assert sieve_html(b"").html == b""
