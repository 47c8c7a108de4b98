"""bowerbird.toml: every setting with its default, and messages that name the line and the key."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bowerbird
from bowerbird.appraise.policy import AUTO, RefreshSettings, make_policy
from bowerbird.crawl.scope import Scope, ScopeRules
from bowerbird.model.errors import ConfigError
from bowerbird.web.address import AddressPolicy
from bowerbird.web.limits import FetchLimits
from bowerbird.web.url import UrlRules


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """Who we are, what we crawl, in which order."""

    contact: str = ""
    product: str = "Bowerbird"
    policy: str = AUTO
    scope: str = "domain"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_depth: int = 30
    max_redirects: int = 10
    max_links_per_page: int = 5000
    follow_nofollow: bool = False
    well_known_feeds: tuple[str, ...] = ()
    workers: int = 0
    rate_per_s: float = 0.0
    max_errors: int = 4
    retry_base_s: float = 30.0
    lease_s: float = 300.0
    nice: int = 5


@dataclass(frozen=True, slots=True)
class PolitenessSettings:
    """How gently a host is treated."""

    delay_s: float = 1.0
    connections_per_host: int = 1
    max_crawl_delay_s: float = 60.0


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """What the crawler may connect to."""

    allow_addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrapSettings:
    """Bounds on endless sites."""

    urls_per_pattern: int = 200
    growth_per_novel_page: int = 20
    path_repetitions: int = 3
    near_duplicate_at: float = 0.8


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """The WARC archive."""

    max_file_mb: int = 1024
    gzip_level: int = 1


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The search index."""

    commit_every_s: float = 3.0
    heap_mb: int = 128


@dataclass(frozen=True, slots=True)
class DemandSettings:
    """What is remembered of searchers, and how much of an answer they see."""

    half_life_days: float = 30.0
    min_occurrences: int = 2
    visibility: str = "power"
    visible_ranks: int = 10


@dataclass(frozen=True, slots=True)
class QualitySettings:
    """How the repository's quality is measured."""

    probe_share: float = 0.01
    sample: int = 500
    max_age_days: float = 30.0
    max_queries: int = 2000
    every_s: float = 600.0


@dataclass(frozen=True, slots=True)
class FrontierSettings:
    """How the worth of new pages is studied."""

    study_every_s: float = 60.0
    damping: float = 0.85
    real_share: float = 0.5
    max_queries: int = 10_000
    query_share: float = 1.0


@dataclass(frozen=True, slots=True)
class HubSettings:
    """How hubs are studied: the pages and files that announce new pages."""

    study_every_s: float = 60.0
    half_life_days: float = 2.0
    page_age_days: float = 3.0
    explore: float = 0.1


@dataclass(frozen=True, slots=True)
class SeedSettings:
    """How the seeds of a running crawl are chosen anew."""

    study_every_s: float = 3600.0
    k: int = 10
    hops: int = 5
    worth_change: float = 0.01


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """How `auto` weighs new pages, refreshes and hubs against each other."""

    horizon_days: float = 30.0
    study_every_s: float = 300.0
    correct: bool = True

    @property
    def horizon_s(self) -> float:
        """The same in seconds."""
        return self.horizon_days * 86400.0


@dataclass(frozen=True, slots=True)
class Settings:
    """All of bowerbird.toml."""

    crawl: CrawlSettings = field(default_factory=CrawlSettings)
    politeness: PolitenessSettings = field(default_factory=PolitenessSettings)
    fetch: FetchLimits = field(default_factory=FetchLimits)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    urls: UrlRules = field(default_factory=UrlRules)
    refresh: RefreshSettings = field(default_factory=RefreshSettings)
    frontier: FrontierSettings = field(default_factory=FrontierSettings)
    hubs: HubSettings = field(default_factory=HubSettings)
    seeds: SeedSettings = field(default_factory=SeedSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    traps: TrapSettings = field(default_factory=TrapSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    index: IndexSettings = field(default_factory=IndexSettings)
    demand: DemandSettings = field(default_factory=DemandSettings)
    quality: QualitySettings = field(default_factory=QualitySettings)

    @property
    def user_agent(self) -> str:
        """An honest name with a contact."""
        return f"{self.crawl.product}/{bowerbird.__version__} (+{self.crawl.contact or 'no contact set'})"

    @property
    def scope_rules(self) -> ScopeRules:
        """The scope part."""
        return ScopeRules(self.crawl.scope, self.crawl.include, self.crawl.exclude)

    @property
    def worker_count(self) -> int:
        """Workers to start: one per core by default."""
        return self.crawl.workers or len(os.sched_getaffinity(0))

    def with_overrides(self, section: str, **values: Any) -> Settings:
        """A copy with some values of one section replaced, as command-line options do."""
        part = dataclasses.replace(getattr(self, section), **values)
        return dataclasses.replace(self, **{section: part})


def load_settings(path: Path) -> Settings:
    """Read bowerbird.toml; ConfigError names the line and the key of anything that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}). Restore it, or run `bowerbird init` anew.") from error
    return parse_settings(text, path)


def parse_settings(text: str, path: Path) -> Settings:
    """As `load_settings`, of a text that is or will be at `path`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}. Mend that line.") from error
    return _build(Settings, data, text, path)


def _build(kind: type[Settings], data: dict[str, Any], text: str, path: Path) -> Settings:
    sections = {}
    hints = typing.get_type_hints(kind)
    for section, values in data.items():
        if section not in hints:
            _fail(path, text, "", section, f"unknown section; known are {', '.join(hints)}")
        if not isinstance(values, dict):
            _fail(path, text, "", section, "must be a section: [" + section + "]")
        target = hints[section]
        fields = typing.get_type_hints(target)
        for key, value in values.items():
            if key not in fields:
                _fail(path, text, section, key, f"unknown key; known in [{section}] are {', '.join(fields)}")
            values[key] = _convert(value, fields[key], path, text, section, key)
        sections[section] = target(**values)
    settings = kind(**sections)
    _check(settings, path, text)
    return settings


def _convert(value: Any, wanted: Any, path: Path, text: str, section: str, key: str) -> Any:
    origin = typing.get_origin(wanted)
    if origin in (typing.Union, types.UnionType):
        wanted = next(arg for arg in typing.get_args(wanted) if arg is not type(None))
        origin = typing.get_origin(wanted)
    if origin is tuple:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        _fail(path, text, section, key, f"{value!r}: must be a list of strings")
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not wanted:
        _fail(path, text, section, key, f"{value!r}: must be {_NAMES[wanted]}")
    if wanted in (int, float):
        least, most = RANGES.get((section, key), (0, math.inf))
        off = (section, key) in MAY_BE_OFF
        if not ((least <= value <= most or (off and value == 0)) and math.isfinite(value)):
            bounds = f"must be from {least:g} to {most:g}" if most < math.inf else f"must be at least {least:g}"
            bounds = bounds if math.isfinite(value) else "must be a number with an end"
            _fail(path, text, section, key, f"{value!r}: {bounds}{', or 0 for never' if off else ''}")
    return value


#: (section, key) -> least and most; every other number may be 0 or more
RANGES: dict[tuple[str, str], tuple[float, float]] = {
    ("crawl", "workers"): (0, 64),
    ("crawl", "lease_s"): (1, math.inf),
    ("crawl", "nice"): (0, 19),
    ("crawl", "max_depth"): (0, 254),  # a column of bytes; 255 stands for more
    ("politeness", "connections_per_host"): (1, 256),
    ("fetch", "connect_s"): (0.001, math.inf),
    ("fetch", "first_byte_s"): (0.001, math.inf),
    ("fetch", "total_s"): (0.001, math.inf),
    ("fetch", "max_body_bytes"): (1, math.inf),
    ("fetch", "max_decoded_bytes"): (1, math.inf),
    ("fetch", "max_header_bytes"): (1, math.inf),
    ("fetch", "max_connections"): (1, 4096),
    ("refresh", "interval_s"): (0.001, math.inf),
    ("refresh", "hub_interval_s"): (0.001, math.inf),
    ("refresh", "max_interval_s"): (0.001, math.inf),
    ("refresh", "gone_interval_s"): (0.001, math.inf),
    ("refresh", "shorter"): (0, 0.99),
    ("refresh", "explore"): (0, 1),
    ("refresh", "threshold"): (0, 1),
    ("refresh", "study_every_s"): (1, math.inf),
    ("frontier", "study_every_s"): (1, math.inf),
    ("frontier", "damping"): (0, 0.99),
    ("frontier", "real_share"): (0, 1),
    ("frontier", "max_queries"): (1, 1_000_000),
    ("frontier", "query_share"): (0.0001, 1),
    ("hubs", "study_every_s"): (1, math.inf),
    ("hubs", "half_life_days"): (0.00001, math.inf),
    ("hubs", "explore"): (0.001, 1),
    ("seeds", "study_every_s"): (1, math.inf),
    ("seeds", "k"): (1, 1000),
    ("seeds", "hops"): (1, 120),  # links to go are counted in a byte
    ("seeds", "worth_change"): (0, 10),
    ("budget", "horizon_days"): (0.00001, 36500),
    ("budget", "study_every_s"): (1, math.inf),
    ("traps", "path_repetitions"): (1, math.inf),
    ("traps", "near_duplicate_at"): (0, 1),
    ("archive", "max_file_mb"): (1, math.inf),
    ("archive", "gzip_level"): (0, 3),
    ("index", "heap_mb"): (16, 4000),
    ("demand", "half_life_days"): (0.001, math.inf),
    ("demand", "min_occurrences"): (1, math.inf),
    ("demand", "visible_ranks"): (1, 1000),
    ("quality", "probe_share"): (0, 1),
    ("quality", "sample"): (20, 100_000),
    ("quality", "max_age_days"): (0.001, math.inf),
    ("quality", "max_queries"): (1, 100_000),
    ("quality", "every_s"): (1, math.inf),
}
#: whose ranges leave 0 out, which they may be all the same
MAY_BE_OFF = (("seeds", "study_every_s"),)
VISIBILITIES = ("power", "top-k", "fitted")
_NAMES: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}


def _check(settings: Settings, path: Path, text: str) -> None:
    """Values that only their users can judge."""
    checks = (
        ("crawl", "policy", lambda: make_policy(settings.crawl.policy)),
        ("crawl", "scope", lambda: Scope(ScopeRules(settings.crawl.scope))),
        ("crawl", "include", lambda: Scope(ScopeRules(include=settings.crawl.include))),
        ("crawl", "exclude", lambda: Scope(ScopeRules(exclude=settings.crawl.exclude))),
        ("network", "allow_addresses", lambda: AddressPolicy(settings.network.allow_addresses)),
    )
    for section, key, check in checks:
        try:
            check()
        except Exception as error:
            _fail(path, text, section, key, str(error).rstrip("."))
    if settings.demand.visibility not in VISIBILITIES:
        problem = f"{settings.demand.visibility!r}: must be one of {', '.join(VISIBILITIES)}"
        _fail(path, text, "demand", "visibility", problem)
    if not re.fullmatch(r"[A-Za-z_-]+", settings.crawl.product):
        problem = "must be ASCII letters, '-' and '_' only, or no robots.txt could address it (RFC 9309)"
        _fail(path, text, "crawl", "product", f"{settings.crawl.product!r}: {problem}")
    if not (settings.user_agent.isascii() and settings.user_agent.isprintable()):
        _fail(path, text, "crawl", "contact", f"{settings.crawl.contact!r}: must be printable ASCII, it is a header")
    refresh = settings.refresh
    for key, bound in (("interval_s", refresh.interval_s), ("min_interval_s", refresh.min_interval_s)):
        if bound > refresh.max_interval_s:  # say the one that was set: the other may be the default
            default = refresh.max_interval_s == RefreshSettings().max_interval_s
            problem = f"refresh.{key} ({bound:g}) is more than refresh.max_interval_s ({refresh.max_interval_s:g})"
            name = key if default else "max_interval_s"
            _fail(path, text, "refresh", name, f"{problem}: lower the one or raise the other")
    lease_s, total_s = settings.crawl.lease_s, settings.fetch.total_s
    if total_s >= lease_s:  # or a slow fetch is taken for a lost worker
        section, key = ("crawl", "lease_s") if lease_s != CrawlSettings().lease_s else ("fetch", "total_s")
        _fail(path, text, section, key, f"fetch.total_s ({total_s:g}) must be less than crawl.lease_s ({lease_s:g})")


def _fail(path: Path, text: str, section: str, key: str, problem: str) -> typing.NoReturn:
    where, inside = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[([^\]]+)\]", line)
        if header:
            inside = header.group(1).strip()
            if not section and inside.split(".")[0] == key:
                where = number
                break
        elif re.match(rf"\s*{re.escape(key)}\s*=", line) and inside == section:
            where = number
            break
    at = f"line {where or _first_mention(text, key)}"
    name = f"{section}.{key}" if section else key
    raise ConfigError(f"{path}: {at}: {name}: {problem}.")


def _first_mention(text: str, key: str) -> int:
    """The line of a key that is written in another way: dotted, quoted, in an inline table."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(rf"\b{re.escape(key)}\b", line.partition("#")[0]):
            return number
    return 1
