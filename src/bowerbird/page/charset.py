"""In which encoding are these bytes? The HTML standard has the rules, the Encoding standard the labels."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

# Encoding: Python codec, then labels other than the name itself.
_ENCODINGS = {
    "utf-8": "utf-8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8",
    "ibm866": "cp866 866 cp866 csibm866",
    "iso-8859-2": "iso8859-2 csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso-8859-3": "iso8859-3 csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso-8859-4": "iso8859-4 csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso-8859-5": "iso8859-5 csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    "iso-8859-6": "iso8859-6 arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e"
    " iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    "iso-8859-7": "iso8859-7 csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597"
    " iso_8859-7 iso_8859-7:1987 sun_eu_greek",
    "iso-8859-8": "iso8859-8 csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598"
    " iso_8859-8 iso_8859-8:1988 visual",
    "iso-8859-8-i": "iso8859-8 csiso88598i logical",
    "iso-8859-10": "iso8859-10 csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso-8859-13": "iso8859-13 iso8859-13 iso885913",
    "iso-8859-14": "iso8859-14 iso8859-14 iso885914",
    "iso-8859-15": "iso8859-15 csisolatin9 iso8859-15 iso885915 iso_8859-15 l9",
    "iso-8859-16": "iso8859-16",
    "koi8-r": "koi8-r cskoi8r koi koi8 koi8_r",
    "koi8-u": "koi8-u koi8-ru",
    "macintosh": "mac-roman csmacintosh mac x-mac-roman",
    "windows-874": "cp874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620",
    "windows-1250": "cp1250 cp1250 x-cp1250",
    "windows-1251": "cp1251 cp1251 x-cp1251",
    "windows-1252": "cp1252 ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100"
    " iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252",
    "windows-1253": "cp1253 cp1253 x-cp1253",
    "windows-1254": "cp1254 cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9"
    " iso_8859-9:1989 l5 latin5 x-cp1254",
    "windows-1255": "cp1255 cp1255 x-cp1255",
    "windows-1256": "cp1256 cp1256 x-cp1256",
    "windows-1257": "cp1257 cp1257 x-cp1257",
    "windows-1258": "cp1258 cp1258 x-cp1258",
    "x-mac-cyrillic": "mac-cyrillic x-mac-ukrainian",
    "gbk": "gb18030 chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk",
    "gb18030": "gb18030",
    "big5": "big5hkscs big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "euc_jp cseucpkdfmtjapanese x-euc-jp",
    "iso-2022-jp": "iso2022_jp csiso2022jp",
    "shift_jis": "cp932 csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis",
    "euc-kr": "cp949 cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601"
    " windows-949",
    "utf-16be": "utf-16-be unicodefffe",
    "utf-16le": "utf-16-le csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16",
    "x-user-defined": "cp1252",
}
_CODECS = {name: row.split()[0] for name, row in _ENCODINGS.items()}
_LABELS = {label: name for name, row in _ENCODINGS.items() for label in (name, *row.split()[1:])}

_PRESCAN_BYTES = 1024
_HEADER_CHARSET = re.compile(r"""charset\s*=\s*(?:["']\s*)?([^\s"';,]+)""", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"""<meta[\s/]((?:[^>"']|"[^"]*"|'[^']*')*)>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""([^\s=/>"']+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")
_META_CHARSET = re.compile(rb"""charset\s*=\s*(?:["']\s*)?([^\s"';]+)""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""\A\s*<\?xml[^>]*?encoding\s*=\s*["']([^"']+)["']""", re.IGNORECASE)


def sniff_charset(body: bytes, content_type: str = "") -> str:
    """The encoding of a page: byte order mark, transport header, declaration in the page, then what decodes.

    >>> sniff_charset(b"<p>caf\\xe9", "text/html; charset=ISO-8859-1")
    'windows-1252'
    """
    start = body[:3]
    if start == codecs.BOM_UTF8:
        return "utf-8"
    if start[:2] == codecs.BOM_UTF16_BE:
        return "utf-16be"
    if start[:2] == codecs.BOM_UTF16_LE:
        return "utf-16le"
    declared = read_header_charset(content_type) or _prescan(body[:_PRESCAN_BYTES])
    if declared is not None:
        return declared
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        # a page cut off in the middle of a character is still UTF-8
        return "utf-8" if error.start >= max(1, len(body) - 3) else "windows-1252"
    return "utf-8"


@lru_cache(maxsize=512)
def read_header_charset(content_type: str) -> str | None:
    """The encoding a Content-Type header names, if it is one we know."""
    match = _HEADER_CHARSET.search(content_type)
    return name_encoding(match[1]) if match else None


def name_encoding(label: str) -> str | None:
    """The encoding that a label means by the Encoding standard.

    >>> name_encoding("Latin1"), name_encoding("gb2312"), name_encoding("klingon")
    ('windows-1252', 'gbk', None)
    """
    return _LABELS.get(label.strip().lower())


def decode_bytes(body: bytes, charset: str) -> str:
    """Decode without ever failing: what cannot be read becomes U+FFFD, a byte order mark is dropped."""
    codec = _CODECS.get(charset) or _CODECS.get(name_encoding(charset) or "", "utf-8")
    return body.decode(codec, "replace").removeprefix("\ufeff")


def _prescan(head: bytes) -> str | None:
    lowered = head.lower()
    if b"charset" not in lowered and b"encoding" not in lowered:
        return None
    label = None
    for meta in _META.finditer(_COMMENT.sub(b"", head)):
        attributes = {
            key.lower(): double or single or bare for key, double, single, bare in _ATTRIBUTE.findall(meta[1])
        }
        label = attributes.get(b"charset")
        if label is None and attributes.get(b"http-equiv", b"").lower() == b"content-type":
            found = _META_CHARSET.search(attributes.get(b"content", b""))
            label = found[1] if found else None
        if label is not None:
            break
    if label is None:
        found = _XML_ENCODING.match(head)
        label = found[1] if found else None
    name = name_encoding(label.decode("latin-1")) if label else None
    if name in ("utf-16be", "utf-16le"):  # the declaration was read as ASCII, so it cannot be true
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name
