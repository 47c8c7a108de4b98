"""Which page to crawl next? Links and clicks are tables of pandas, Polars or PyArrow: `rank_table.py polars`."""

import importlib
import sys

import bowerbird

library = importlib.import_module(sys.argv[1] if len(sys.argv) > 1 else "pandas")
table = library.table if library.__name__ == "pyarrow" else library.DataFrame

links = table(
    {
        "source": ["/", "/", "/", "/cars", "/cars", "/cars", "/boats", "/boats"],
        "target": ["/cars", "/boats", "/about", "/cars/red", "/cars/blue", "/about", "/boats/sail", "/cars/red"],
    }
)
clicks = table({"page": ["/", "/cars", "/boats"], "clicks": [40, 25, 2]})

ranking = bowerbird.rank(links, clicks, method="rw-eg", n=3)
print(f"by {ranking.method}, {ranking.calibration.kind}: {ranking.calibration.note}")
for page, score, in_links in zip(ranking.page, ranking.score, ranking.in_links, strict=True):
    print(f"{page:12} score {score:.4f}, {in_links} in-links")

best = ranking.to_arrow()  # or polars.DataFrame(ranking), pandas.DataFrame(ranking.columns())
print(f"{best.num_rows} rows of {', '.join(best.column_names)}")
