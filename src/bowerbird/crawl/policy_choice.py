"""Which policy to look by: the one asked for, else that of the crawl that runs, else that of the settings."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from bowerbird.appraise.policy import AUTO, Policy, make_policy
from bowerbird.crawl.settings import Settings
from bowerbird.model.errors import PolicyError
from bowerbird.store.connection import Connection
from bowerbird.store.folder import CrawlFolder, WriterLock


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """The policy to look by, beside the others that it could have been."""

    policy: Policy
    asked: bool  # for this one
    running: Policy | None  # of the crawl that runs now, which its command line may have chosen
    settings: Policy
    last: Policy | None  # of the last run; None before there was one, or where it is known no more

    def hint(self, doing: str = "shows its bids", *, studied_only: bool = False) -> str:
        """One line for those who may have expected another policy; empty where there is none to expect."""
        last, here = self.last, self.policy
        if self.asked or last is None or last.name == here.name:
            return ""
        pairs = ((last.frontier, here.frontier), (last.refresh, here.refresh), (last.hubs, here.hubs))
        parts = [one.name for one, other in pairs if one.name != other.name]
        if studied_only:
            parts = [name for name in parts if name in last.studied]
        elif AUTO in (last.name, here.name):  # it has no parts: beside it, those not named would be the plain ones
            parts = [last.name]
        return f"{self.tell_apart()}: --policy {'+'.join(parts)} {doing}" if parts else ""

    def tell_apart(self) -> str:
        """What the last crawl did and what the settings say."""
        last = "" if self.last is None else self.last.name
        return f"the last crawl ran with {last}, the settings say {self.settings.name}"

    def to_study(self) -> Policy:
        """Of the policy looked by and those it could have been, the first that needs studies; else it itself."""
        others = () if self.asked else (self.running, self.settings, self.last)
        return next((one for one in (self.policy, *others) if one is not None and one.studied), self.policy)


def last_policy(connection: Connection) -> str:
    """The name of the policy of the last run; empty before there was one."""
    run = connection.execute("SELECT policy FROM runs ORDER BY id DESC LIMIT 1").fetchone()
    return str(run[0]) if run else ""


def choose_policy(
    folder: CrawlFolder, settings: Settings, connection: Connection, asked: str | None = None
) -> PolicyChoice:
    """A part that is not asked for is that of the crawl that runs, else that of the settings."""
    refresh = settings.refresh
    horizon_s = settings.budget.horizon_s
    of_settings = make_policy(settings.crawl.policy, refresh, horizon_s=horizon_s)
    run = connection.execute("SELECT policy, ended_at FROM runs ORDER BY id DESC LIMIT 1").fetchone()
    last = running = None
    if run is not None:
        with suppress(PolicyError):  # another version's
            last = make_policy(run[0], refresh, horizon_s=horizon_s)
        if run[1] is None and WriterLock.is_held(folder):
            running = last
    usual = running or of_settings
    policy = usual if asked is None else make_policy(asked, refresh, usual.name, horizon_s=horizon_s)
    return PolicyChoice(policy, asked is not None, running, of_settings, last)
