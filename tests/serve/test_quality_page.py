"""docs/quality.md says what the command and the settings are."""

from __future__ import annotations

import re
from dataclasses import fields

from tests.serve.conftest import ROOT

from bowerbird.cli.quality import MEANING, quality_command
from bowerbird.crawl.measure import FEWEST_PROBES
from bowerbird.crawl.settings import QualitySettings

TEXT = (ROOT / "docs" / "quality.md").read_text(encoding="utf-8")


def test_every_option_is_explained() -> None:
    options = {name for option in quality_command.params for name in option.opts if name.startswith("--")}
    assert options == set(re.findall(r"^\| `(--\w+)", TEXT, re.MULTILINE)) - {"--rounds"}


def test_every_setting_is_there_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", TEXT, re.MULTILINE))
    assert {name: float(value) for name, value in rows.items()} == {
        field.name: float(field.default) for field in fields(QualitySettings)
    }


def test_every_cause_and_the_least_number_of_probes_are_there() -> None:
    assert set(MEANING) <= set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
    assert f"at least {FEWEST_PROBES} of the pages" in TEXT
