"""A small site on disk, in the format of the refresh experiments: enough for every policy to have something to do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

PAGES, WEEKS = 60, 48
TOPICS = ("car", "moon", "bread", "tree", "song", "ship")


def write_site(folder: Path, *, pages: int = PAGES, weeks: int = WEEKS, changing: bool = True) -> Path:
    """Pages of six topics; the first of each topic is linked most; some change often, most seldom, some never.

    Without `changing`, all that happens is that another page comes in each week.
    """
    rng = np.random.default_rng(3)
    folder.mkdir(parents=True, exist_ok=True)
    words = [f"w{number}" for number in range(80)]

    def text(page: int) -> str:
        body = [TOPICS[page % 6]] * int(rng.integers(1, 4)) + rng.choice(words, 25).tolist()
        if rng.random() < 0.4:
            body.append(TOPICS[(page + 1) % 6])
        return f"---\ntitle: {TOPICS[page % 6]} w{page}\n---\n" + " ".join(rng.permutation(body).tolist())

    paths = [f"docs/{TOPICS[page % 6]}/{page:02}.md" for page in range(pages)]
    base = [{"path": path, "text": text(page)} for page, path in enumerate(paths)]
    often = np.array([0.5, 0.05, 0.02, 0.2, 0.0, 0.1])
    changes = [
        {"week": week, "status": "M", "path": paths[page], "text": text(page)}
        for week in range(1, weeks + 1)
        for page in range(pages)
        if rng.random() < often[(page // 6) % 6]
    ]
    if not changing:
        changes = [
            {"week": week, "status": "A", "path": f"new/{week}.md", "text": "new"} for week in range(1, weeks + 1)
        ]
    links = [(paths[page], paths[other]) for page in range(pages) for other in rng.integers(0, 1 + page, 4)]
    (folder / "base.jsonl").write_text("".join(json.dumps(each) + "\n" for each in base), encoding="utf-8")
    (folder / "weeks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in changes), encoding="utf-8")
    (folder / "links.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in links), encoding="utf-8")
    asked = "".join(f"{topic}\t{30 - 4 * place}\n" for place, topic in enumerate(TOPICS))
    pairs = "".join(f"{TOPICS[number % 6]} {words[number]}\t{1 + number % 5}\n" for number in range(40))
    (folder / "queries.tsv").write_text(f"query\tfrequency\n{asked}{pairs}", encoding="utf-8")
    return folder
