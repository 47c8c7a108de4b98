from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.page.charset import decode_bytes, name_encoding, sniff_charset


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"\xef\xbb\xbf<p>", "text/html; charset=iso-8859-1", "utf-8"),
        (b"\xfe\xff\x00<", "text/html; charset=utf-8", "utf-16be"),
        (b"\xff\xfe<\x00", "", "utf-16le"),
        (b"<meta charset=shift_jis>", "text/html; charset=EUC-KR", "euc-kr"),
        (b"<p>", 'text/html; charset="UTF-8"', "utf-8"),
        (b"<p>", "text/html;charset = 'latin1'", "windows-1252"),
        (b"<meta charset=shift_jis>", "text/html; charset=bogus", "shift_jis"),
        (b"<META CHARSET='GB2312'>", "text/html", "gbk"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">', "", "windows-1251"),
        (b'<meta content="text/html; charset=koi8-r" http-equiv=content-type>', "", "koi8-r"),
        (b'<meta name="x" content="text/html; charset=koi8-r"><p>', "", "utf-8"),
        (b"<!-- <meta charset=koi8-r> --><meta charset=big5>", "", "big5"),
        (b"<meta charset=utf-16>", "", "utf-8"),
        (b"<meta charset=x-user-defined>", "", "windows-1252"),
        (b'<?xml version="1.0" encoding="ISO-8859-2"?><html>', "", "iso-8859-2"),
        (b" " * 1024 + b"<meta charset=koi8-r>", "", "utf-8"),
        (b"caf\xc3\xa9", "", "utf-8"),
        (b"caf\xe9 noir", "", "windows-1252"),
        (b"plain, cut in a character \xe2\x82", "", "utf-8"),
        (b"", "", "utf-8"),
    ],
)
def test_rules_of_the_standard(body: bytes, content_type: str, expected: str) -> None:
    assert sniff_charset(body, content_type) == expected


def test_labels_mean_what_the_encoding_standard_says() -> None:
    labels = {
        "ASCII": "windows-1252",
        " iso-8859-9 ": "windows-1254",
        "ks_c_5601-1987": "euc-kr",
        "sjis": "shift_jis",
    }
    assert {label: name_encoding(label) for label in labels} == labels
    assert name_encoding("utf-7") is None


@pytest.mark.parametrize(
    ("text", "codec", "charset"),
    [
        ("“café”", "cp1252", "windows-1252"),
        ("日本語", "cp932", "shift_jis"),
        ("日本語", "euc_jp", "euc-jp"),
        ("한국어", "cp949", "euc-kr"),
        ("中文", "gb18030", "gbk"),
        ("中文", "big5hkscs", "big5"),
        ("Привет", "koi8-r", "koi8-r"),
        ("x", "utf-16", "utf-16le"),
    ],
)
def test_decodes(text: str, codec: str, charset: str) -> None:
    assert decode_bytes(text.encode(codec), charset) == text


@given(st.binary(max_size=2000), st.text(max_size=60))
def test_any_bytes_have_a_charset_that_decodes_them(body: bytes, content_type: str) -> None:
    assert isinstance(decode_bytes(body, sniff_charset(body, content_type)), str)


@given(st.text(max_size=500))
def test_utf8_without_declaration_survives(text: str) -> None:
    body = text.encode("utf-8", "replace")
    if b"charset" not in body.lower() and b"encoding" not in body.lower():
        assert sniff_charset(body, "text/html") == "utf-8"


def test_spaces_around_a_label() -> None:
    assert sniff_charset(b"", "text/html; charset = ' latin1'") == "windows-1252"
    assert sniff_charset(b"<meta http-equiv=content-type content='a; charset= \" koi8-r\"'>") == "koi8-r"
