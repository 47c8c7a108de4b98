"""A small living web: deterministic hosts, pages, links and change, served over real HTTP.

A `WorldSpec` says what the web is like; `World(spec)` answers for any address at any time, and knows the
truth (what can be reached, what changed when, what people want) that a crawl is judged by; `WorldServer`
serves it. Inside: `chance` draws, `web` holds the arrays, `timeline` what happens, `paths` addresses, `prose`
and `words` text, `anchors`, `pages`, `listings` and `traps` answers, `reach` the walk, `wire`, `serving` and
`child` the HTTP.
"""

from bowerbird.lab.world.pages import Answer
from bowerbird.lab.world.server import WorldServer
from bowerbird.lab.world.spec import WorldSpec
from bowerbird.lab.world.timeline import Article, Change
from bowerbird.lab.world.traps import Trap, TrapKind
from bowerbird.lab.world.wire import Access, Faults
from bowerbird.lab.world.world import World

__all__ = [
    "Access",
    "Answer",
    "Article",
    "Change",
    "Faults",
    "Trap",
    "TrapKind",
    "World",
    "WorldServer",
    "WorldSpec",
]
