"""What is fetched next, and why? Pages, links and clicks are tables; new pages and refreshes bid together."""

import bowerbird

DAY_S, NOW = 86_400.0, 1_800_000_000.0
names = ["https://a.example/", "https://a.example/new", "https://b.example/", "https://b.example/new"]
pages = {
    "page": names,
    "last_fetched": [NOW - 20 * DAY_S, None, NOW - 3 * DAY_S, None],
    "interval_s": [7 * DAY_S] * 4,
}
links = {"source": [names[0], names[0], names[2]], "target": [names[1], names[3], names[3]]}
clicks = {"page": [names[0], names[2]], "clicks": [9, 4]}

snapshot = bowerbird.snapshot_of(pages, now=NOW, links=links, clicks=clicks)
bids = bowerbird.bid(snapshot, "rw-eg+adaptive")
today, next_week = bids.value(), bids.value(NOW + 7 * DAY_S)
for row in bids.order().tolist():
    print(f"{names[row]:22} bids {today[row]:.2f} now, {next_week[row]:.2f} in a week")
print("at once, one a host:", *(names[row] for row in bids.next(10).tolist()))
why = bids.explain(int(bids.order(1)[0]))
print(f"the first: {why.children[0].name} = {why.value:.2f}, {why.note}")
