"""Content codings: what was encoded comes back, and nothing hostile takes more memory than the limit."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tracemalloc
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.web.decoding import Decoded, decode_body

TEXT = b"The bower is decorated with blue things. " * 3000
LIMIT = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeezer.compress(data) + squeezer.flush()


def stream_zstd(data: bytes) -> bytes:
    squeezer = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compressobj()
    return squeezer.compress(data) + squeezer.flush()


ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}
VARIANTS = [
    *ENCODERS.items(),
    ("deflate", raw_deflate),
    ("zstd", stream_zstd),
    ("GZIP", gzip.compress),
    (" gzip ", gzip.compress),
    ("identity", bytes),
    ("utf-8", bytes),
    ("", bytes),
]


@pytest.mark.parametrize(("coding", "encode"), VARIANTS)
def test_what_was_encoded_comes_back(coding, encode):
    assert decode_body(encode(TEXT), coding, LIMIT) == Decoded(TEXT)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_an_empty_body_is_empty(coding):
    assert decode_body(b"", coding, LIMIT) == Decoded(b"")
    assert decode_body(ENCODERS[coding](b""), coding, LIMIT) == Decoded(b"")


@settings(max_examples=60, deadline=None)
@given(
    data=st.binary(max_size=3000),
    codings=st.lists(st.sampled_from(sorted(ENCODERS)), max_size=4),
)
def test_stacked_codings_come_off_in_reverse(data, codings):
    encoded = data
    for coding in codings:
        encoded = ENCODERS[coding](encoded)
    assert decode_body(encoded, ", ".join(codings), LIMIT) == Decoded(data)


def test_too_many_codings_are_refused():
    encoded = b"x"
    for _ in range(5):
        encoded = gzip.compress(encoded)
    assert "5 content codings" in decode_body(encoded, ",".join(["gzip"] * 5), LIMIT).fault


def test_unknown_coding_is_a_fault():
    assert "'exi'" in decode_body(b"abc", "exi", LIMIT).fault


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("garbage", [b"<html>not compressed at all</html>", b"\xff" * 40, bytes(40)])
def test_garbage_is_a_fault(coding, garbage):
    decoded = decode_body(garbage, coding, LIMIT)
    assert decoded.fault and decoded.body == b""


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=400), coding=st.sampled_from(["gzip", "deflate", "br", "zstd", "zstd, gzip"]))
def test_no_bytes_raise(data, coding):
    decoded = decode_body(data, coding, 10_000)
    assert len(decoded.body) <= 10_000
    assert not (decoded.fault and decoded.body)


@settings(max_examples=150, deadline=None)
@given(
    coding=st.sampled_from(["gzip", "deflate", "br", "zstd"]),
    at=st.floats(0, 1),
    byte=st.integers(0, 255),
)
def test_a_damaged_byte_never_raises(coding, at, byte):
    encoded = bytearray(ENCODERS[coding](TEXT))
    encoded[int(at * (len(encoded) - 1))] = byte
    assert len(decode_body(bytes(encoded), coding, LIMIT).body) <= LIMIT


@pytest.mark.parametrize(
    ("coding", "encode"),
    [("gzip", gzip.compress), ("deflate", raw_deflate), ("br", brotli.compress), ("zstd", stream_zstd)],
)
def test_a_truncated_body_keeps_its_valid_prefix(coding, encode):
    text = bytes(range(256)) * 40 + zlib.compress(TEXT) * 3 + TEXT * 20
    encoded = encode(text)
    decoded = decode_body(encoded[:-5], coding, 10 << 20)
    assert decoded.truncated and not decoded.fault
    assert decoded.body and text.startswith(decoded.body)


def test_a_body_cut_before_any_content_is_a_fault():
    assert "ended before any content" in decode_body(gzip.compress(TEXT)[:11], "gzip", LIMIT).fault
    assert "ended before any content" in decode_body(zstandard.compress(TEXT)[:9], "zstd", LIMIT).fault


@pytest.mark.parametrize("encode", [stream_zstd, zstandard.compress])
def test_every_cut_of_a_zstd_frame_is_noticed(encode):
    encoded = encode(TEXT[:5000]) + encode(b"second frame")
    assert decode_body(encoded, "zstd", LIMIT) == Decoded(TEXT[:5000] + b"second frame")
    first = len(encode(TEXT[:5000]))
    for end in (*range(1, first), *range(first + 4, len(encoded))):
        decoded = decode_body(encoded[:end], "zstd", LIMIT)
        assert decoded.truncated or decoded.fault, end


def test_frames_to_skip_are_skipped():
    skipped = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    assert decode_body(skipped + zstandard.compress(b"x") + skipped, "zstd", LIMIT) == Decoded(b"x")


def test_a_zstd_frame_that_wants_a_huge_window_is_refused():
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    squeezer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    assert "zstd" in decode_body(squeezer.compress(TEXT) + squeezer.flush(), "zstd", LIMIT).fault


def test_a_wrong_gzip_checksum_is_a_fault():
    encoded = bytearray(gzip.compress(TEXT))
    encoded[-8] ^= 1
    assert "damaged gzip" in decode_body(bytes(encoded), "gzip", LIMIT).fault


def test_gzip_members_are_joined_and_padding_is_ignored():
    encoded = gzip.compress(b"one ") + gzip.compress(b"two") + bytes(512)
    assert decode_body(encoded, "gzip", LIMIT) == Decoded(b"one two")


def test_very_many_gzip_members_are_refused_quickly():
    member = gzip.compress(b"")
    assert "members" in decode_body(member * (10_000_000 // len(member)), "gzip", LIMIT).fault


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", ""])
@pytest.mark.parametrize(("size", "fits"), [(LIMIT, True), (LIMIT + 1, False)])
def test_the_limit_is_exact(coding, size, fits):
    decoded = decode_body(ENCODERS.get(coding, bytes)(bytes(size)), coding, LIMIT)
    assert (len(decoded.body) == size) is fits
    assert bool(decoded.fault) is not fits


def test_the_limit_counts_all_members():
    member = gzip.compress(bytes(LIMIT // 2 + 1))
    assert "larger than" in decode_body(member * 2, "gzip", LIMIT).fault


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_stops_at_the_limit(coding):
    bomb = ENCODERS[coding](bytes(16 << 20))
    tracemalloc.start()
    try:
        decoded = decode_body(bomb, coding, LIMIT)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "larger than" in decoded.fault
    assert peak_bytes < 3 * LIMIT


def test_a_ten_gigabyte_bomb_in_little_memory():
    # one full block of zeros, repeated within a single deflate stream: 10 GB from 10 MB
    script = """
import resource, zlib
from bowerbird.web.decoding import decode_body
squeezer = zlib.compressobj(9, wbits=31)
head = squeezer.compress(bytes(1 << 20)) + squeezer.flush(zlib.Z_FULL_FLUSH)
block = squeezer.compress(bytes(1 << 20)) + squeezer.flush(zlib.Z_FULL_FLUSH)
bomb = head + block * 10_000
before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
decoded = decode_body(bomb, "gzip", 20 << 20)
assert "larger than" in decoded.fault, decoded.fault
print(len(bomb), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    bomb_bytes, grown_kib = map(int, done.stdout.split())
    assert bomb_bytes > 9_000_000
    assert grown_kib < 64 << 10


def test_a_bomb_within_a_bomb_stops_at_the_first_layer():
    inner = gzip.compress(bytes(30 << 20))
    assert "larger than" in decode_body(gzip.compress(inner), "gzip, gzip", LIMIT).fault


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", ""])
def test_a_part_is_kept_where_it_is_wanted(coding):
    text = b"".join(b"line %d\n" % number for number in range(LIMIT // 4))
    assert len(text) > LIMIT
    decoded = decode_body(ENCODERS.get(coding, bytes)(text), coding, LIMIT, keep_partial=True)
    assert decoded.body == text[:LIMIT] and decoded.truncated and not decoded.fault


def test_a_part_of_several_members_is_kept():
    member = gzip.compress(b"a" * (LIMIT // 2 + 1))
    assert decode_body(member * 2, "gzip", LIMIT, keep_partial=True).body == b"a" * LIMIT
