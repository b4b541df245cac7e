"""The scenarios of a lease: who holds it sleeps, is taken for dead, and wakes up."""

from __future__ import annotations

from tests.explorer.actors import Actor
from tests.explorer.table import Scenario

from jskv_saver.errors import LeaseHeldError, LeaseLostError, UnknownOutcomeError

# -- what was before -------------------------------------------------------------------


async def nothing(actor: Actor) -> None:
    """An empty namespace, which its first put opens."""


async def pair(actor: Actor) -> None:
    """Two checkpoints of two runs."""
    await actor.put("1", run_id="r1")
    await actor.put("2", "1", run_id="r2")


# -- what they do ----------------------------------------------------------------------


async def two_steps(actor: Actor) -> None:
    """A run: it may be taken for dead before any of its messages."""
    await actor.take()
    await actor.put("4", "2", grow=False)
    await actor.put("6", "4", grow=False)
    await actor.give_back()


async def step(actor: Actor) -> None:
    await actor.take()
    await actor.put("4", "2", grow=False)
    await actor.give_back()


async def step_and_look(actor: Actor) -> None:
    """It meets the head of others between its steps, and remembers it."""
    await actor.take()
    await actor.put("4", "2", grow=False)
    await actor.read()
    await actor.put("6", "4", grow=False)


async def kept(actor: Actor) -> None:
    """Renewed between its steps, which moves nothing."""
    await actor.take()
    await actor.put("4", "2", grow=False)
    await actor.renew()
    await actor.put("6", "4", grow=False)
    await actor.give_back()


async def in_doubt(actor: Actor) -> None:
    """A put has no answer; it gives the lease back, and the put may still arrive."""
    await actor.take()
    try:
        await actor.put("4", "2", grow=False)
    except UnknownOutcomeError:
        await actor.give_back()


async def first(actor: Actor) -> None:
    await actor.take()
    await actor.put("1", grow=False)
    await actor.give_back()


async def over(actor: Actor) -> None:
    """The server takes the holder for dead, and this one goes on."""
    await actor.expire()
    await actor.take()
    await actor.put("5", "2", grow=False)


async def over_from_nothing(actor: Actor) -> None:
    await actor.expire()
    await actor.take()
    await actor.put("2", grow=False)


async def after(actor: Actor) -> None:
    """As soon as it is given back."""
    await actor.take()
    await actor.put("5", "2", grow=False)


async def over_too(actor: Actor) -> None:
    """As another one does, maybe at the same time."""
    await actor.expire()
    await actor.take()
    await actor.put("7", "2", grow=False)


async def prune(actor: Actor) -> None:
    await actor.prune()


async def delete(actor: Actor) -> None:
    await actor.delete()


async def delete_r2(actor: Actor) -> None:
    await actor.delete_runs("r2")


async def beside(actor: Actor) -> None:
    """Who takes no lease is not kept out, and loses nothing."""
    await actor.put("3", "1", grow=False)


async def small_step(actor: Actor) -> None:
    """As few messages as may be."""
    await actor.take()
    await actor.put("3", run_id="r2")


async def take_over(actor: Actor) -> None:
    await actor.expire()
    await actor.take()


REFUSED = (LeaseHeldError, LeaseLostError)
IN_DOUBT = (*REFUSED, UnknownOutcomeError)

LEASING = [
    Scenario("lease-over", {"A": two_steps, "B": over}, pair, may_raise=REFUSED),
    Scenario("lease-look", {"A": step_and_look, "B": over}, pair, may_raise=REFUSED),
    Scenario("lease-kept", {"A": kept, "B": over}, pair, may_raise=REFUSED),
    Scenario(
        "lease-first", {"A": first, "B": over_from_nothing}, nothing, may_raise=REFUSED
    ),
    Scenario("lease-after", {"A": step, "B": after}, pair, may_raise=REFUSED),
    Scenario(
        "lease-lost", {"A": in_doubt, "B": after}, pair, losses=1, may_raise=IN_DOUBT
    ),
    Scenario(
        "lease-prune", {"A": step, "B": over, "P": prune}, pair, may_raise=REFUSED
    ),
    Scenario(
        "lease-runs", {"A": step, "B": over, "P": delete_r2}, pair, may_raise=REFUSED
    ),
    Scenario(
        "lease-delete", {"A": step, "B": over, "P": delete}, pair, may_raise=REFUSED
    ),
    Scenario(
        "lease-beside", {"A": step, "B": over, "C": beside}, pair, may_raise=REFUSED
    ),
    Scenario(
        "lease-three", {"A": step, "B": over, "C": over_too}, pair, may_raise=REFUSED
    ),
]
TINY_LEASE = Scenario(
    "tiny-lease", {"A": small_step, "B": take_over}, pair, may_raise=REFUSED
)
