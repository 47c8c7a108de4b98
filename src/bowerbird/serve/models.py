"""What the JSON API takes and gives, field by field; the OpenAPI document is made from these."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """Exactly these fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Problem(Model):
    """What went wrong, in words."""

    detail: str


class SearchResult(Model):
    """One result. `highlights` are ranges of characters in `snippet`, which is plain text."""

    rank: int = Field(description="Place in the answer, from 1")
    url: str
    title: str
    snippet: str
    highlights: list[tuple[int, int]]
    score: float
    fetched_at: str | None = Field(description="When this version was fetched (ISO 8601, UTC)")
    language: str
    folded: int = Field(description="Near-duplicates found too and folded under this result")
    click: str = Field(description="Token for /click and /api/click")


class SearchAnswer(Model):
    """One page of the results of a query."""

    query: str
    total: int = Field(description="Pages that match, near-duplicates counted")
    seconds: float
    page: int
    results: list[SearchResult]


class Click(BaseModel):
    """A result that was opened."""

    click: str = Field(description="The token of the result, from /api/search")


class Study(Model):
    """How the worth of new pages, or of refreshes, was last worked out."""

    at: str | None
    method: str
    kind: str = Field(
        description="calibrated: by clicks on fetched pages; measured: by gains of refreshes; prior: neither"
    )
    pages: int
    clicks: float
    note: str


class ChosenSeed(Model):
    """A seed, with what it adds to those before it in the list."""

    url: str
    pages: int
    value: float


class SeedBound(Model):
    """No choice of as many seeds covers more than this value."""

    value: float
    confidence: float


class SeedChange(Model):
    """What one choice of seeds changed; all values of one day's graph."""

    at: str
    value: float
    before_value: float = Field(description="What the seeds before it cover")
    all_value: float
    added: int
    dropped: int


class Seeds(Model):
    """The seeds that a crawl goes by, and how they came about."""

    at: str
    age_s: float
    k: int
    hops: int
    unit: str = Field(description="Of values")
    seeds: list[ChosenSeed] = Field(description="Chosen; each adds to what those before it and the given ones cover")
    given: int = Field(description="Seeds that people gave, as far as they are fetched")
    given_pages: int = Field(description="That those cover")
    given_value: float
    covered_pages: int = Field(description="By given and chosen seeds together; so are the other sums")
    covered_value: float
    pages: int
    value: float
    share: float
    before_value: float
    before_share: float
    added: list[str]
    dropped: list[str]
    kept: int
    bound: SeedBound | None
    samples: int
    note: str
    seconds: float
    history: list[SeedChange] = Field(description="The last choices that changed something, oldest first")


class Watched(Model):
    """What was expected of one kind of fetch, or by one appraiser, and what came of it."""

    name: str
    fetches: int = Field(description="That were looked at")
    expected: float | None = Field(description="Of them by now, in `unit`")
    realised: float | None
    unit: str
    ratio: float | None = Field(
        description="Realised by expected, shrunk towards 1: as if 5 more events had come as expected"
    )
    low: float | None = Field(description="95% interval of the ratio")
    high: float | None
    events: float | None = Field(description="Clicks, pages found or changes that were expected")
    drifts: bool = Field(description="Wrong by more than chance explains")
    too_little: bool = Field(description="Less than one event was expected: the ratio says nothing")


class KindWatched(Watched):
    """One kind of fetch, whose expected gains are multiplied by a factor."""

    by_near: bool = Field(description="Whether that factor goes by the fetches near the price; else they are too few")


class Margin(Watched):
    """The fetches of one kind that bid near the price: what they were to gain as they bid, and what they did gain."""

    surely_off: bool = Field(description="The whole interval is more than a fifth from 1")
    cannot_tell: bool = Field(description="It may be more than a fifth below 1 and as well above")


class Watch(Model):
    """Expectations beside what came of them, and the factors that follow."""

    at: str | None
    kinds: list[KindWatched]
    appraisers: list[Watched]
    factors: dict[str, float] = Field(description="By which the expected gains of each kind are multiplied")
    info: dict[str, str | float | None]
    margins: list[Margin] = Field(description="By kind, of fetches near the price; empty before the first such watch")


class OneBudget(Model):
    """What the one budget of policy auto is spent on."""

    unit_clicks: float | None = Field(
        description="Clicks that a bid of 1 stands for; null before all studies are there"
    )
    price_clicks: float | None = Field(
        description="What a fetch must gain, in clicks within the horizon: now, or when the crawl last ran"
    )
    rests_on: str = Field(description="What the scales between kinds rest on: clicks, or links and changes")
    by_clicks: bool = Field(description="Whether they rest on clicks: before any is known prices are no real clicks")
    heard_s: float | None = Field(description="How long clicks have been heard; null without any of known time")
    waits_for: list[str] = Field(description="Methods without a study yet")
    horizon_days: float
    rate_per_s: float | None = Field(description="The budget; null where there is none")
    span_s: float = Field(description="The time that `fetches` were made in: the last hour, or the last run")
    fetches: dict[str, float] = Field(description="By kind")
    sampled: bool = Field(description="Whether `fetches` are told from a sample, as where there are many")
    watch: Watch | None


class Status(Model):
    """A crawl at a glance."""

    folder: str = Field(description="Name of the crawl folder")
    running: bool
    policy: str
    known: int
    frontier: int
    fetched: int
    states: dict[str, int]
    fetches: int
    budget: dict[str, int] = Field(description="Fetches by what they were spent on")
    errors: dict[str, int]
    outcomes: dict[str, int]
    wire_bytes: int
    pages_per_s: float | None
    price: float | None
    in_flight: int
    hosts: int
    hosts_waiting: int
    hosts_in_trouble: int
    near_duplicates: int
    indexed: int
    index_behind: int
    archive_bytes: int
    last_fetch: str | None
    study: Study | None = Field(description="The study that was made last, of new or known pages, by whatever method")
    study_notes: list[str] = Field(description="What went wrong with the last studies, or is special about them")
    seeds: Seeds | None = Field(description="The pages that the crawl chose to start from; null before it has")
    seed_note: str = Field(description="Why there is no choice, where that is known")
    one_budget: OneBudget | None = Field(description="What policy auto spends its budget on; null for other policies")


class Term(BaseModel):
    """A part of a bid: its value and the parts it is made of."""

    name: str
    value: float | str | None
    note: str = ""
    children: list[Term] = []


class Bid(Model):
    """What a fetch is worth, over time."""

    value: float | None
    amplitude: float | None
    rate_per_s: float | None
    since: str | None
    shape: str
    tree: Term


class Host(Model):
    """A host's manners and record."""

    origin: str
    delay_s: float | None
    robots: str
    robots_fetched: str | None
    last_fetch: str | None
    ready_at: str | None
    errors_in_a_row: int
    known: int
    pages: int
    trap_score: float | None


class Expected(Model):
    """When the URL's turn comes, and why."""

    at: str | None
    why: str
    in_s: float | None = None
    before_it_on_host: int | None = None


class Sooner(Model):
    """One thing that would have to change for a URL to be fetched sooner."""

    what: str
    value: float | str | None
    text: str


class Standing(Model):
    """Where a URL stands in line. Bids and prices are in `unit`."""

    kind: str = Field(description="Of fetch")
    unit: str = Field(description="clicks; units while no click is known; empty where bids are in no unit")
    unit_clicks: float | None = Field(description="Clicks that a bid of 1 stands for; null where bids are in no unit")
    by_clicks: bool = Field(description="Whether the scales between kinds rest on clicks, or no click is known yet")
    bid: float | None = Field(description="Before the weight of its host, as the price sees it")
    gain: float | None = Field(description="What a fetch is expected to gain, whatever set its bid: a floor, its age")
    cost: float | None = Field(description="Of the fetch, in usual ones, by its turn, bytes and time")
    price: float | None
    due_in_s: float | None = Field(description="Until its bid reaches the price; null where it never does")
    in_line: int = Field(description="URLs that have bid the price")
    place: int | None = Field(description="Among them; null where it has not")
    better_bids: int
    hosts_in_line: int
    host_free_in_s: float | None
    before_it_on_host: int
    host_price: float | None = Field(description="What it would have to bid for its host's next turn")
    sooner: list[Sooner]


class Worth(Model):
    """Bid and price of a decision, so that they can be compared with those of others."""

    bid: float | None
    price: float | None
    unit: str = Field(
        description="clicks; units, those of now; units of then, before clicks were known; empty for plain bids"
    )


class Fetched(Model):
    """One decision about the URL and what became of it."""

    at: str | None
    kind: str
    outcome: str
    status: int
    bid: float | None
    price: float | None
    terms: dict[str, Any]
    worth: Worth
    changed: bool
    resemblance: float | None
    elapsed_s: float
    wire_bytes: int
    redirects_to: str | None
    error: str | None


class SeedPlace(Model):
    """What a page adds as a seed."""

    place: int
    of: int
    pages: int
    value: float
    share: float
    unit: str
    hops: int


class GuestTurn(Model):
    """Where a URL stands for another program that fetches for the crawl."""

    state: str = Field(description="ready, leased, done, blocked, limit, delay, date, inactive or removed")
    text: str
    at: str | None = Field(description="The earliest that it is handed out; null where that is never or not known")
    line: str


class Explanation(Model):
    """Why a URL is where it is."""

    url: str
    state: str
    kind: str
    depth: int = Field(description="Links from a seed that was given, as it was found: what max_depth goes by")
    near_depth: int = Field(description="Links from the nearest seed, given or chosen: what orders new pages")
    found_on: str | None
    found_how: str
    first_seen: str | None
    last_fetched: str | None
    last_changed: str | None
    fetches: int
    changes: int
    in_links: int
    anchors: list[str]
    seed: SeedPlace | None
    duplicate_of: str | None
    bid: Bid
    price: float | None
    host: Host
    expected: Expected
    standing: Standing
    decision: Term = Field(description="Bid, price, host, rank in line and what would bring it forward, as one tree")
    guest: GuestTurn | None = Field(description="Null where Bowerbird fetches itself")
    history: list[Fetched]


#: what any call may answer besides its result
COMMON_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request cannot be understood, or names another host"},
    429: {"model": Problem, "description": "Too many requests from this address; see Retry-After"},
    503: {"model": Problem, "description": "Busy, or the crawl folder cannot be read at the moment"},
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": Problem, "description": "Not known to this crawl"}}
BODY_PROBLEMS: dict[int | str, dict[str, Any]] = {
    408: {"model": Problem, "description": "The body did not arrive in time"},
    413: {"model": Problem, "description": "The body is too large"},
}
