"""The words of the world: readable titles, and text whose words follow Zipf's law, topic by topic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from bowerbird.lab.world.chance import mix, step

_FUNCTION_TEXT = """
    the of and to in is that for it as was with be on by are this from or at an which have has not but were
    they their one all we can more will its you when also there these other been into some may such than many
    two then first only after most where over new through between before during each both under while often
    since until about so no what up out how who them made used three well part same kind much even still time
    now way here if do make see found take long back good every near around against without within because
    although however usually sometimes once again rather almost always never another same several few less
    until upon along across toward perhaps
"""
_ADJECTIVE_TEXT = """
    quiet early small northern bright common hidden old new simple local deep warm cold modern ancient open
    careful slow quick honest useful rare coastal rural urban summer winter spring autumn morning evening
    wooden silver golden green blue red white dark light heavy gentle wild steady broad narrow famous humble
    lasting curious practical gradual seasonal shared spare distant nearby daily yearly first final young
    plain
"""
FUNCTION = tuple(_FUNCTION_TEXT.split())
ADJECTIVES = tuple(_ADJECTIVE_TEXT.split())
TOPICS: tuple[tuple[str, str], ...] = (
    (
        "gardens",
        """soil seed compost hedge rose tulip orchard pruning mulch greenhouse lawn herb basil tomato pumpkin
        trowel trellis shrub bulb meadow pollen bee weed fern moss irrigation harvest blossom root vine
        nursery allotment""",
    ),
    (
        "cooking",
        """bread flour yeast oven butter cheese soup stew pepper garlic onion recipe kitchen pan knife sauce
        pastry dough noodle rice lentil spice cinnamon honey vinegar pickle roast grill supper breakfast
        chocolate broth""",
    ),
    (
        "health",
        """sleep heart muscle vitamin diet doctor clinic vaccine fever allergy exercise posture breathing
        blood nerve bone skin therapy patient nurse hospital symptom virus recovery stress hearing vision
        pharmacy dentist ageing fitness hydration""",
    ),
    (
        "sports",
        """match league goal coach stadium runner marathon cycling sprint tennis racket swimmer rowing referee
        season trophy defender striker keeper tournament record medal training ski climb fencing judo chess
        relay hurdle archery sailing""",
    ),
    (
        "travel",
        """ferry station timetable hostel island coast harbour passport luggage museum market mountain pass
        valley road bridge castle village guide ticket airport platform tram border camp trail lighthouse
        beach canyon desert monastery inn""",
    ),
    (
        "nature",
        """forest river otter heron falcon owl beetle butterfly salmon wolf deer badger wetland glacier reef
        whale seal migration nest habitat lichen oak birch pine fungus estuary tide marsh canopy predator
        burrow plumage""",
    ),
    (
        "weather",
        """storm rain cloud forecast thunder hail frost snow drought flood wind gust pressure humidity front
        cyclone monsoon temperature heatwave fog mist rainbow radar satellite barometer season sunrise
        dew ice breeze tornado climate""",
    ),
    (
        "astronomy",
        """planet comet galaxy telescope orbit eclipse meteor nebula star moon crater asteroid lens spectrum
        dust ring gravity probe mission launch horizon constellation pulsar quasar mirror observatory sky
        zenith rover crust mantle satellite""",
    ),
    (
        "computing",
        """compiler kernel network cache thread database index query server packet cipher browser crawler
        parser protocol router socket memory disk pixel sensor robot script module function variable
        branch merge test bug latency cluster""",
    ),
    (
        "science",
        """atom enzyme protein catalyst crystal laser electron photon isotope reaction polymer genome cell
        microscope theory experiment measurement membrane neuron fossil sediment magma mineral plasma
        vacuum entropy vector proof theorem sample hypothesis pigment""",
    ),
    (
        "history",
        """empire treaty king queen archive ruin siege monument manuscript voyage revolt parliament coin
        temple tomb dynasty knight merchant guild plague census railway factory mill colony charter map
        chronicle relic fortress pottery legend""",
    ),
    (
        "music",
        """melody chord rhythm violin cello piano flute drum choir opera symphony concert tempo harmony score
        singer lyric ballad guitar trumpet clarinet orchestra rehearsal encore album record festival jazz
        waltz sonata folk reed""",
    ),
    (
        "arts",
        """canvas brush sculpture gallery portrait sketch ceramic glaze loom weaving print etching fresco
        mosaic easel charcoal palette exhibition painter studio frame landscape collage poster novel poem
        stage actor mask costume dance film""",
    ),
    (
        "money",
        """bank loan interest budget pension tax savings market bond share price wage rent mortgage invoice
        audit insurance profit deficit trade tariff currency ledger account credit debt fund dividend
        inflation receipt auction grant""",
    ),
    (
        "housing",
        """roof window door brick timber plaster insulation boiler radiator tile floor stair balcony attic
        cellar chimney gutter paint shelf cupboard lamp carpet curtain tenant landlord mason carpenter
        plumber wiring fence shed garage""",
    ),
    (
        "politics",
        """election ballot minister senate council mayor campaign reform debate coalition law court judge
        budget embassy summit sanction petition protest voter district constitution amendment party
        referendum speech spokesman committee veto bill citizen border""",
    ),
)
NOUNS = 32
_ONSETS = (
    "b",
    "c",
    "d",
    "f",
    "g",
    "h",
    "j",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "z",
    "br",
    "cr",
    "dr",
    "fl",
    "gr",
    "kl",
    "pl",
    "pr",
    "sk",
    "sl",
    "st",
    "tr",
    "sh",
    "th",
)
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "io", "ou")
_CODAS = ("", "", "", "n", "r", "l", "s", "m", "t", "nd", "st", "rk")
_SITE = (
    "Gazette",
    "Review",
    "Journal",
    "Notes",
    "Almanac",
    "Herald",
    "Guide",
    "Society",
    "Library",
    "Digest",
    "Post",
    "Companion",
)
_TAIL = 1_500
_TABLE_BITS = 16
VARIANTS = 4  # a token is " word", ", word", ". Word" or ".</p>\n<p>Word"
_TITLES = (
    "{0} {1} and the {2}",
    "A guide to the {0} {1}",
    "{0} {1}: the {2} explained",
    "Why the {0} {1} matters",
    "Notes on the {0} {1}",
    "The {1}, the {2} and one {0} year",
    "How to choose your {0} {1}",
    "From {1} to {2}: one {0} story",
)


def invent(state: int, syllables: int = 2) -> str:
    """A pronounceable made-up word."""
    parts = []
    for _ in range(syllables):
        state = step(state)
        parts.append(_ONSETS[state % len(_ONSETS)] + _VOWELS[(state >> 16) % len(_VOWELS)])
    state = step(state)
    return "".join(parts) + _CODAS[state % len(_CODAS)]


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic's name, its nouns (for titles), and its whole vocabulary as tokens of text."""

    name: str
    nouns: tuple[str, ...]
    tokens: npt.NDArray[np.object_]  # VARIANTS * size strings
    size: int

    def title(self, key: int) -> str:
        """The title of the page whose key this is."""
        adjective, first, second = title_words(key)
        text = _TITLES[(key >> 16) & 7].format(ADJECTIVES[adjective], self.nouns[first], self.nouns[second])
        return text[0].upper() + text[1:]


def title_words(key: int) -> tuple[int, int, int]:
    """Which adjective and which two nouns a page's title has."""
    return key & 63, (key >> 6) & 31, (key >> 11) & 31


def site_name(key: int, topic: Topic) -> str:
    """What a site calls itself."""
    name = f"{ADJECTIVES[key & 63]} {topic.nouns[(key >> 6) & 31]} {_SITE[(key >> 11) % len(_SITE)]}"
    return name.title()


@cache
def zipf_table() -> npt.NDArray[np.uint16]:
    """Word numbers such that a uniform place in this table is a word by its frequency."""
    groups = (
        (0.42, 1.0 / np.arange(3, len(FUNCTION) + 3)),
        (0.06, np.ones(len(ADJECTIVES))),
        (0.22, 1.0 / np.arange(3, NOUNS + 3)),
        (0.30, 1.0 / np.arange(5, _TAIL + 5)),
    )
    weights = np.concatenate([share * group / group.sum() for share, group in groups])
    edges = np.cumsum(weights) / weights.sum()
    places = (np.arange(1 << _TABLE_BITS) + 0.5) / (1 << _TABLE_BITS)
    return np.searchsorted(edges, places).astype(np.uint16)


ADJECTIVE_AT = len(FUNCTION)
NOUN_AT = ADJECTIVE_AT + len(ADJECTIVES)


class Vocabulary:
    """The topics of one world; each is made when it is first needed."""

    def __init__(self, seed: int, topics: int) -> None:
        self._seed = seed
        self._topics: list[Topic | None] = [None] * topics

    def topic(self, number: int) -> Topic:
        """One topic."""
        topic = self._topics[number]
        if topic is None:
            topic = self._topics[number] = self._make(number)
        return topic

    def name(self, number: int) -> str:
        """A topic's name, fit for a URL."""
        if number < len(TOPICS):
            return TOPICS[number][0]
        return f"{invent(mix(self._seed, 11, number), 3)}{number}"

    def _make(self, number: int) -> Topic:
        if number < len(TOPICS):
            nouns = tuple(TOPICS[number][1].split())
        else:
            nouns = tuple(invent(mix(self._seed, 12, number, i)) for i in range(NOUNS))
        tail = (invent(mix(self._seed, 13, number, i), 2 + (i > 300)) for i in range(_TAIL))
        words = (*FUNCTION, *ADJECTIVES, *nouns, *tail)
        capitals = [word[0].upper() + word[1:] for word in words]
        strings = [f" {word}" for word in words]
        strings += [f", {word}" for word in words]
        strings += [f". {word}" for word in capitals]
        strings += [f".</p>\n<p>{word}" for word in capitals]
        return Topic(self.name(number), nouns, np.array(strings, dtype=object), len(words))
