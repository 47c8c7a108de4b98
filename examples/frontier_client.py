"""A fetcher of the frontier service: seeds in, URLs out, and back what became of them and what they link to.

bowerbird frontier-service frontier --port 7071 &
python examples/frontier_client.py 127.0.0.1:7071 20 https://example.org/

It stays on the hosts of its seeds, and fetches 20 pages. One for the open web would ask for robots.txt, too.
"""

import re
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import urljoin, urlsplit

import grpc

from bowerbird.integrations.urlfrontier.messages import CALLS, CLASSES, SERVICE


def call(name, requests):
    """The answers to the requests of one call; none of the calls here has a single one."""
    streams = "stream_stream" if CALLS[name].streams_in else "unary_stream"
    send, read = CLASSES[CALLS[name].request].SerializeToString, CLASSES[CALLS[name].response].FromString
    return getattr(channel, streams)(f"/{SERVICE}/{name}", send, read)(requests)


def info(url, **metadata):
    """A URL with what is known of it; a list of all names that are understood is in docs/urlfrontier.md."""
    values = {name: CLASSES["StringList"](values=[value]) for name, value in metadata.items()}
    return CLASSES["URLInfo"](url=url, metadata=values)


def put(found, known):
    """Say what was found, and what was fetched: that is done for good, for no date says when to fetch it again."""
    items = [CLASSES["URLItem"](discovered=CLASSES["DiscoveredURLItem"](info=one)) for one in found]
    items += [CLASSES["URLItem"](known=CLASSES["KnownURLItem"](info=one)) for one in known]
    list(call("PutURLs", iter(items)))  # answered when it is on disk


def fetch(url):
    """The status and the text of a page."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status, answer.read(1 << 20).decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return 503, ""  # it may be there later


channel = grpc.insecure_channel(sys.argv[1])
most, seeds = int(sys.argv[2]), sys.argv[3:]
hosts = {urlsplit(seed).netloc for seed in seeds}
found, known, fetched, quiet = [info(seed) for seed in seeds], [], 0, 0
while fetched < most and quiet < 20:
    items = [CLASSES["URLItem"](discovered=CLASSES["DiscoveredURLItem"](info=one)) for one in found]
    items += [
        CLASSES["URLItem"](known=CLASSES["KnownURLItem"](info=one)) for one in known
    ]  # done: no date to come back
    list(call("PutURLs", iter(items)))  # answered when it is on disk
    found, known = [], []
    for given in call("GetURLs", CLASSES["GetParams"](max_urls_per_queue=1, max_queues=most - fetched)):
        status, text = fetch(given.url)
        print(status, given.url, flush=True)
        known.append(info(given.url, status=str(status)))
        for href, anchor in re.findall(r'<a [^>]*href="([^"#]+)[^>]*>([^<]*)', text):
            if urlsplit(target := urljoin(given.url, href)).netloc in hosts:
                found.append(info(target, referrer=given.url, anchor=anchor))
    fetched, quiet = fetched + len(known), 0 if known else quiet + 1
    time.sleep(0 if known else 0.5)  # the delays of all queues
put(found, known)
