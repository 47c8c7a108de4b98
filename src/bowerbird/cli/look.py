"""Commands that look at a crawl, running or not: status, next, explain, search."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from bowerbird.cli.budget import budget_rows, price_text
from bowerbird.cli.values import FOLDER, count_text, echo_json, plain_text, size_text, time_text
from bowerbird.crawl.moments import clock_text
from bowerbird.crawl.seed_report import seed_text, summary_text
from bowerbird.crawl.url_story import own_terms
from bowerbird.crawl.view import CrawlView
from bowerbird.index.query import parse_query
from bowerbird.model.outcome import NO_ERRORS, Outcome
from bowerbird.model.worth import amount_text


@click.command("status")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status_command(folder: Path, as_json: bool) -> None:
    """Fetched, frontier, errors by kind, speed, budget by kind of fetch, hosts waiting.

    In JSON, `outcomes` counts every decision by what became of it; `errors` are those of them that brought no page,
    which includes what was not found (`gone`) and what was excluded (`robots`, `out-of-scope`).
    """
    view = CrawlView(folder)
    try:
        status = view.status()
        last_speed = view.last_run_speed()
    finally:
        view.close()
    if as_json:
        echo_json(status)
        return
    outcomes = status["outcomes"]
    apart = {outcome.label for outcome in NO_ERRORS}
    if status["running"]:
        speed = f"{status['pages_per_s']:.1f} fetches/s, {status['in_flight']} in flight"
    else:
        speed = f"{last_speed:.1f} fetches/s in the last run" if last_speed else "nothing was fetched by any run"
        speed = "no run yet" if last_speed is None else speed
    click.echo(f"{status['folder']}: {'running' if status['running'] else 'not running'}, policy {status['policy']}")
    rows = [
        (
            "fetched",
            f"{status['fetched']:,} pages ({status['fetches']:,} fetches, {size_text(status['wire_bytes'])})",
        ),
        ("frontier", f"{status['frontier']:,} of {status['known']:,} known URLs"),
        ("states", _pairs({k: v for k, v in status["states"].items() if v})),
        ("not found", f"{outcomes.get(Outcome.GONE.label, 0):,}"),
        (
            "excluded",
            f"{outcomes.get(Outcome.ROBOTS.label, 0):,} by robots.txt, "
            f"{outcomes.get(Outcome.OUT_OF_SCOPE.label, 0):,} out of scope",
        ),
        ("errors", _pairs({k: v for k, v in status["errors"].items() if k not in apart}) or "none"),
        ("speed", speed),
        ("budget", f"{_pairs(status['budget'])}; price {price_text(status)}"),
        (
            "hosts",
            f"{status['hosts']:,} known, {status['hosts_waiting']:,} waiting, "
            f"{status['hosts_in_trouble']:,} in trouble",
        ),
        ("search", f"{status['indexed']:,} pages indexed, {status['index_behind']:,} fetches behind"),
        (
            "archive",
            f"{size_text(status['archive_bytes'])}; {status['near_duplicates']:,} near-duplicates seen",
        ),
        ("last fetch", status["last_fetch"] or "never"),
    ]
    if status["one_budget"]:
        rows += budget_rows(status["one_budget"])
    if status["study"]:
        rows.append(("last study", _tell_study(status["study"])))
    rows += [("study note", note) for note in status["study_notes"]]
    if status["seeds"]:
        age = time_text(status["seeds"]["age_s"])
        rows.append(("seeds", f"{summary_text(status['seeds'])} (looked at {age} ago)"))
    elif status["seed_note"]:
        rows.append(("seeds", f"none chosen: {status['seed_note']}"))
    for name, value in rows:
        click.echo(f"  {name:<11}{value}")


def _depth_text(story: dict[str, Any]) -> str:
    near = f", {story['near_depth']:,} from a chosen one" if story["near_depth"] < story["depth"] else ""
    return f"{count_text(story['depth'], 'link')} from a seed{near}"


def _tell_study(study: dict[str, Any]) -> str:
    note: str = study["note"]
    by_clicks = study["kind"] == "calibrated"
    basis = f"calibrated {note.partition(', ')[0]}" if by_clicks else f"{study['kind']}: {note.partition(':')[0]}"
    return f"{study['at']} by {study['method']}, {basis}"


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:,}" for name, value in values.items())


@click.command("next")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("-n", "count", type=click.IntRange(min=1, max=10_000), default=20, show_default=True, help="How many.")
@click.option("--policy", default=None, help="As another policy would choose, by its own study if it needs one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def next_command(folder: Path, count: int, policy: str | None, as_json: bool) -> None:
    """What would be fetched now, with bids; then what waits for its host or its time."""
    view = CrawlView(folder, policy)
    try:
        rows = view.next(count)
        hint = "\n".join(filter(None, (view.choice.hint(), view.guest.note if view.guest is not None else "")))
    finally:
        view.close()
    if as_json:
        echo_json(rows)
        return
    _give_hint(hint)
    if not rows:
        click.echo("Nothing bids: no URL may be fetched.")
    for row in rows:
        told = (_plain(*term) for term in own_terms(row["terms"]).items())
        why = ", ".join(f"{name}={value}" for name, value in told)
        bid = _tell_bid(row["worth"], "bid")
        click.echo(f"{bid:>15}  {row['kind']:<7} {row['when']:<25} {row['url']}  {why}")


def _tell_bid(worth: dict[str, Any], name: str) -> str:
    return amount_text(worth[name], worth["unit"], 4)


def _give_hint(hint: str) -> None:
    if hint:
        click.echo(hint, err=True)


def _plain(name: str, value: object) -> tuple[str, str]:
    """A term as people read it: seconds have a unit, so the name needs none."""
    if name.endswith("_s") and isinstance(value, int | float):
        return name.removesuffix("_s"), time_text(value)
    return name, f"{value:.4g}" if isinstance(value, float) else str(value)


@click.command("explain")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("url")
@click.option("--policy", default=None, help="As another policy would bid, by its own study if it needs one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain_command(folder: Path, url: str, policy: str | None, as_json: bool) -> None:
    """Why a URL is where it is: state, history, its bid as a tree, its host, and when it will be fetched."""
    view = CrawlView(folder, policy)
    try:
        story = view.explain(url)
        hint = view.choice.hint()
    finally:
        view.close()
    if as_json:
        echo_json(story)
        return
    _give_hint(hint)
    click.echo(story["url"])
    facts = [
        ("state", f"{story['state']} ({story['kind']}, {_depth_text(story)})"),
        ("found", f"{story['first_seen']}{' ' if story['found_on'] else ', '}{story['found_how']}"),
        (
            "fetched",
            f"{count_text(story['fetches'], 'time')}, changed {count_text(story['changes'], 'time')}, "
            f"last {story['last_fetched'] or 'never'}",
        ),
        ("in-links", f"{story['in_links']}  anchors: {plain_text(', '.join(story['anchors'])) or '-'}"),
    ]
    if story["seed"]:
        facts.append(("chosen", f"by the crawl to start from: {seed_text(story['seed'])}"))
    if story["duplicate_of"]:
        facts.append(("copy of", story["duplicate_of"]))
    for name, value in facts:
        click.echo(f"  {name:<10}{value}")
    bid = story["bid"]
    here = story["standing"]
    price = "" if story["guest"] else f", price {_tell_bid(here, 'price')}"
    click.echo(f"  bid       {_tell_bid(here, 'bid')} ({bid['shape']}){price}")
    _echo_tree(story["decision"], 6)
    host = story["host"]
    if story["guest"]:
        click.echo(f"  owner     {plain_text(story['guest']['text'])}")
    else:
        click.echo(
            f"  host      {host['origin']}: robots {host['robots']}, delay {host['delay_s']:g} s, "
            f"ready {host['ready_at']}, {count_text(host['errors_in_a_row'], 'error')} in a row, "
            f"trap score {host['trap_score']}"
        )
    expected = story["expected"]
    if expected["at"]:
        click.echo(
            f"  expected  {expected['at']} (in {time_text(expected['in_s'])}): {expected['why']}, "
            f"{expected['before_it_on_host']} before it {'in its queue' if story['guest'] else 'at its host'}"
        )
    else:
        when = "no time" if here["bid"] and not story["guest"] else "never"
        click.echo(f"  expected  {when}: {expected['why']}")
    click.echo("  history")
    for event in story["history"]:
        extra = [f"{name} {_tell_bid(event['worth'], name)}" for name in ("bid", "price")]
        if event["changed"]:
            kept = event["resemblance"]
            extra.append("changed" + (f" (resemblance {kept:.2f})" if kept is not None else ""))
        if event["redirects_to"]:
            extra.append(f"-> {event['redirects_to']}")
        if event["error"]:
            extra.append(plain_text(event["error"]))
        click.echo(
            f"    {event['at']}  {event['kind']:<7} {event['outcome']} {event['status'] or ''}  {', '.join(extra)}"
        )
    if not story["history"]:
        click.echo("    none yet")


def _echo_tree(node: dict[str, Any], indent: int) -> None:
    note = f"  ({node['note']})" if node.get("note") else ""
    name, value = _plain(node["name"], node["value"])
    click.echo(f"{' ' * indent}{name} = {value}{note}")
    for child in node.get("children", ()):
        _echo_tree(child, indent + 2)


class SearchCommand(click.Command):
    """Takes a query such as `-gardens` for what it is: click would read it as options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put words with a minus behind `--`."""
        end = args.index("--") if "--" in args else len(args)
        known: list[str] = []
        query: list[str] = []
        for number, word in enumerate(args[:end]):
            is_value = number > 0 and args[number - 1] in ("-n", "--offset")
            is_option = re.fullmatch(r"-h|-n(=?\d+)?|--.*|[^-].*|-?", word, re.DOTALL)
            (known if is_value or is_option else query).append(word)
        return super().parse_args(ctx, [*known, "--", *query, *args[end + 1 :]])


@click.command("search", cls=SearchCommand)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("query")
@click.option("-n", "count", type=click.IntRange(min=1, max=1000), default=10, show_default=True, help="How many.")
@click.option("--offset", type=click.IntRange(min=0, max=100_000), default=0, help="Skip so many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def search_command(folder: Path, query: str, count: int, offset: int, as_json: bool) -> None:
    """Search the fetched pages. Words, "phrases", -minus, site:host, lang:en."""
    view = CrawlView(folder)
    try:
        answer = view.search(query, count, offset)
        nothing_indexed = not answer.total and not view.indexed()
    finally:
        view.close()
    if as_json:
        hits = [
            {
                "url": hit.url,
                "title": hit.title,
                "snippet": hit.snippet,
                "highlights": hit.highlights,
                "score": hit.score,
                "fetched_at": clock_text(hit.fetched_at),
                "language": hit.language,
            }
            for hit in answer.hits
        ]
        echo_json({"query": query, "total": answer.total, "seconds": answer.seconds, "hits": hits})
        return
    if parse_query(query).is_empty:
        click.echo('Nothing to search for: the query has no word. Write words, "phrases", -minus, site:host, lang:en.')
        return
    click.echo(f"{count_text(answer.total, 'page')} in {answer.seconds * 1000:.1f} ms")
    if nothing_indexed:
        click.echo(f"Nothing is indexed yet: `bowerbird crawl {folder}` fetches pages, found within seconds.")
    for number, hit in enumerate(answer.hits, offset + 1):
        click.echo(f"\n{number}. {click.style(plain_text(hit.title or hit.url), bold=True)}")
        click.echo(f"   {click.style(hit.url, fg='green')}  {clock_text(hit.fetched_at)}")
        if hit.snippet:
            click.echo(f"   {_highlight(hit.snippet, hit.highlights)}")


def _highlight(text: str, ranges: tuple[tuple[int, int], ...]) -> str:
    text = plain_text(text)  # one character for one: the ranges still fit
    out, at = "", 0
    for start, end in ranges:
        out += text[at:start] + click.style(text[start:end], bold=True)
        at = end
    return out + text[at:]
