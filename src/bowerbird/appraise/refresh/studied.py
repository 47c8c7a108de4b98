"""Bids of the methods that look at all known pages: read off the last study, with what sites say of changes since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.appraiser import Rows
from bowerbird.appraise.refresh.adaptive import AdaptiveInterval
from bowerbird.model.bid import Bid, Bids, Shape, Term
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlState

F64 = npt.NDArray[np.float64]
DAY_S = 86400.0
STUDY_PRICE = "clearing price of the study"
ON, NOT_OFFERED = 1, -1
OTHER = 3
BASES = np.array(["study", "mean of its host", "mean of all", "own interval"], dtype=object)  # OTHER is the last
BEFORE = "own interval, before a study"
SIGNALS = np.array(["off", "on", "none"], dtype=object)  # NOT_OFFERED is the last


class StudiedRefresh:
    """Bid what a refresh gains in prices, by a study made with this method; before there is one, as adaptive does.

    Pages fetched since the study come round as often as the average page of their host. What is no page (gone, moved)
    has the interval of adaptive. A page that is overdue bids no less than age/interval: new pages that bid more than
    its refresh can ever gain do not starve it.
    """

    escalates = True  # what is overdue bids more

    def __init__(self, name: str, fallback: AdaptiveInterval | None = None) -> None:
        self.name = name
        self.fallback = fallback or AdaptiveInterval()

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Bids of the study's shapes, since the time at which a page without signals would be as likely changed."""
        study = self._study(snapshot)
        if study is None:
            plain = self.fallback.appraise(snapshot, rows)
            terms = {"interval_s": plain.terms["interval_s"], "basis": np.array(BEFORE)}
            return Bids(plain.amplitude, plain.rate, plain.since, plain.shape, terms)
        read = self._read(snapshot, study, rows)
        others = np.flatnonzero(read.basis == OTHER)
        if len(others):
            plain = self.fallback.appraise(snapshot, rows[others])
            for name in ("amplitude", "rate", "since", "shape"):
                getattr(read, name)[others] = getattr(plain, name)
            read.interval[others] = plain.terms["interval_s"]
        terms = {"interval_s": read.interval, "signal": SIGNALS[read.signal], "basis": BASES[read.basis]}
        return Bids(read.amplitude, read.rate, read.since, read.shape, terms)

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """What a refresh gains, in prices: age, changes, loss, what its site says, the price, and when it is due."""
        study = self._study(snapshot)
        one = np.array([row])
        if study is None or snapshot.pages.state[row] != UrlState.FETCHED:
            tree = self.fallback.explain(snapshot, row)
            if study is not None:
                return tree
            note = f"there is no study by {self.name} yet: until then it bids as adaptive does"
            return Term(tree.name, tree.value, note, tree.children)
        bids = StudiedRefresh.appraise(self, snapshot, one)  # as the study has it: who bounds that says so above it
        bid = bids.bid(0)
        age = max(snapshot.now - float(snapshot.pages.last_fetched[row]), 0.0)
        children: list[Term] = [Term("age_s", age, "since it was fetched")]
        basis = str(bids.terms["basis"][0])
        name, note = "age/interval", "due when it reaches 1"
        if basis == BASES[0]:
            by_gain = not _goes_by_interval(study, row) and (bid.shape is not Shape.LINEAR or bool(study.recall.size))
            if by_gain and bid.shape == study.shape[row]:
                name = "gain of a refresh/price"
            elif study.shape[row] != Shape.LINEAR:
                note = "overdue: it bids more than its refresh gains, so that new pages do not starve it"
            children += self._explain_page(snapshot, study, row, bid)
        else:
            children.append(
                Term("interval_s", float(bids.terms["interval_s"][0]), f"{basis}: it was fetched after the study")
            )
        children.append(_tell_due(bid, snapshot.now))
        children.append(
            Term("study_age_s", max(snapshot.now - study.at, 0.0), f"by {study.method}, of {_pages(study):,} pages")
        )
        return Term(name, bid.value(snapshot.now), note, tuple(children))

    def next_interval_s(self, interval_s: float, changed: bool) -> float:
        """As it was, within bounds: visits that a study asks for are not those that `adaptive` would learn from."""
        kept = interval_s if interval_s > 0 else self.fallback.interval_s
        return min(max(kept, self.fallback.min_s), self.fallback.max_s)

    def _study(self, snapshot: Snapshot) -> RefreshStudy | None:
        study = snapshot.refresh_study
        return study if study is not None and study.method == self.name else None

    def _read(self, snapshot: Snapshot, study: RefreshStudy, rows: Rows) -> _Read:
        """What the study and sites say of the fetched pages among these rows."""
        from bowerbird.appraise.refresh.studied_kernels import read_bids  # compiled code loads slowly

        pages, count = snapshot.pages, len(rows)
        read = _Read(
            *(np.empty(count, np.float32), np.empty(count, np.float32), np.empty(count), np.empty(count, np.uint8)),
            *(np.empty(count, np.float32), np.empty(count), np.empty(count, np.int8), np.empty(count, np.int8)),
        )
        read_bids(
            snapshot.now,
            self.fallback.min_s,
            rows,
            (pages.state, pages.host, pages.last_fetched, pages.hint_modified),
            (study.amplitude, study.rate_per_s, study.shape, study.interval_s, study.changes_per_s),
            (study.host_interval_s, study.recall, study.false_rate_per_s),
            study.default_interval_s,
            study.longest_s,
            self.escalates,
            *(read.amplitude, read.rate, read.since, read.shape, read.interval, read.age_s, read.signal, read.basis),
        )
        return read

    def _explain_page(self, snapshot: Snapshot, study: RefreshStudy, row: int, bid: Bid) -> list[Term]:
        pages = snapshot.pages
        heard = self._read(snapshot, study, np.array([row]))
        age_s = max(snapshot.now - float(pages.last_fetched[row]), 0.0)
        out: list[Term] = []
        if heard.signal[0] != NOT_OFFERED:
            host = int(pages.host[row])
            said = _clock(float(pages.hint_modified[row]))
            news = "after" if heard.signal[0] == ON else "before"
            likely = "as likely changed as a page of this age"
            bound_s = float(study.interval_s[row]) * age_s / study.longest_s
            if heard.signal[0] != ON and heard.age_s[0] <= bound_s * (1.0 + 1e-9) and bound_s > 0.0:
                likely = f"silence counts, but no page waits longer than {span_text(study.longest_s)}"
            note = f"its site says it was modified {said}, {news} that: {likely}"
            recall = Term("recall", float(study.recall[host]), "of its host: changes that it tells of")
            false = Term("false_per_day", float(study.false_rate_per_s[host]) * DAY_S, "signals without a change")
            out.append(Term("effective_age_s", float(heard.age_s[0]), note, (recall, false)))
        visits, changes = max(int(pages.fetches[row]) - 1, 0), int(pages.changes[row])
        seen = f"{visits} visits after the first found {changes} changes"
        details = study.details
        if details is not None:
            seen += f"; with its prior as sure as {float(details.certainty[row]):.3g} changes seen"
        trust = _tell_trust(study, int(pages.host[row]))
        out.append(Term("changes_per_day", float(study.changes_per_s[row]) * DAY_S, seen, trust))
        if details is not None:
            note = "share of quality Q that searchers lose while a change is missed, if they see it"
            loss = Term("loss while stale", float(details.loss[row]), note)
            growth = Term(
                "gain_per_day",
                float(details.growth_per_s[row]) * DAY_S,
                "of Q: by so much a refresh gains more the later it comes, at first",
            )
            stake = Term(
                "stake",
                float(details.stake[row]),
                "share of Q that a change of the whole page could move, by today's answers",
            )
            out += [loss, growth, stake]
        interval = float(study.interval_s[row])
        if not _goes_by_interval(study, row):
            note = "the age at which it gains 1, the price without a budget"
        elif interval <= self.fallback.min_s * 1.001:
            note = "the shortest there may be"
        else:
            note = "what is left for pages whose refresh gains least: none is left alone for ever"
        out.append(Term("interval_s", interval, note))
        budget = f"{study.budget_per_s * DAY_S:,.4g} refreshes a day of {_pages(study):,} pages clear at this"
        out.append(Term(STUDY_PRICE, study.price, f"in the unit of {study.method}: {budget}"))
        return out


@dataclass(frozen=True, slots=True)
class _Read:
    """By row, as `studied_kernels.read_bids` fills it in; what is no fetched page has a signal and a basis only."""

    amplitude: npt.NDArray[np.float32]
    rate: npt.NDArray[np.float32]
    since: F64
    shape: npt.NDArray[np.uint8]
    interval: npt.NDArray[np.float32]
    age_s: F64  # effective
    signal: npt.NDArray[np.int8]
    basis: npt.NDArray[np.int8]


def _goes_by_interval(study: RefreshStudy, row: int) -> bool:
    """Whether a page bids in proportion to its age because of a bound, not of what its refresh gains."""
    return bool(study.shape[row] == Shape.LINEAR and study.amplitude[row] == 1.0)


def _tell_trust(study: RefreshStudy, host: int) -> tuple[Term, ...]:
    """How far what its host says of versions is believed."""
    trust = study.trust
    if trust is None or host >= len(trust.not_modified):
        return ()
    recall, false = float(trust.date_recall[host]), float(trust.date_false_per_s[host]) * DAY_S
    return (
        Term("304 believed", float(trust.not_modified[host]), "share of changes that move its host's validators"),
        Term("Last-Modified recall", recall, "share of changes that its host dates"),
        Term("Last-Modified false_per_day", false, "new dates without a change"),
    )


def _tell_due(bid: Bid, now: float) -> Term:
    """When the bid reaches 1, if nothing new is heard."""
    at = bid.reaches(1.0, now)
    if at is None:
        return Term("due", "never", "the bid does not reach the price")
    return Term("due", _clock(at), "now" if at <= now else f"in {span_text(at - now)}")


def _clock(at: float) -> str:
    return datetime.fromtimestamp(min(at, 253402300799.0), UTC).isoformat(timespec="seconds")


def span_text(seconds: float) -> str:
    """A time as people say it.

    >>> span_text(90.0), span_text(4 * 3600.0)
    ('90.0 seconds', '4.0 hours')
    """
    for size, unit in ((DAY_S, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} seconds"


def _pages(study: RefreshStudy) -> int:
    return int(study.info.get("pages", 0.0))
