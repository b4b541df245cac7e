"""The scenarios of parts that records bring, and others refer to."""

from __future__ import annotations

from tests.explorer.actors import Actor
from tests.explorer.table import Scenario

from jskv_saver.errors import DocumentNotFoundError, UnknownOutcomeError

# -- what was before -------------------------------------------------------------------


async def chain(actor: Actor) -> None:
    """Three of three runs: each brings bytes that those after it refer to."""
    await actor.put("1", run_id="r1")
    await actor.put("2", "1", run_id="r2")
    await actor.put("3", "2", run_id="r3")


async def skewed(actor: Actor) -> None:
    """A clock was behind: the last one has a smaller id than its parent."""
    await actor.put("1", run_id="r1")
    await actor.put("4", "1", run_id="r2")
    await actor.put("3", "4", run_id="r3")


# -- what they do ----------------------------------------------------------------------


async def second_life(actor: Actor) -> None:
    """With its parent gone it is laid out in full, and brings something else."""
    await actor.put("2", "1", run_id="r2")


async def prune(actor: Actor) -> None:
    await actor.prune()


async def delete_r2(actor: Actor) -> None:
    await actor.delete_runs("r2")


async def delete(actor: Actor) -> None:
    await actor.delete()


async def second_life_skewed(actor: Actor) -> None:
    await actor.put("4", "1", run_id="r2")


async def fork_skewed(actor: Actor) -> None:
    """The newest message is a record then, which knows of no dead."""
    await actor.put("2", grow=False)


async def continue_chain(actor: Actor) -> None:
    """Refers to what its parent brings, and to what that one's ancestors bring."""
    await actor.put("5", "3")


async def fork_chained(actor: Actor) -> None:
    await actor.put("4", "2")


async def look(actor: Actor) -> None:
    """Reads what is made of the bytes of several records."""
    await actor.read("3")


async def delete_r1_and_r2(actor: Actor) -> None:
    await actor.delete_runs("r1", "r2")


async def delete_r2_and_r3(actor: Actor) -> None:
    await actor.delete_runs("r2", "r3")


LOST = (UnknownOutcomeError, DocumentNotFoundError)

LENDING = [
    Scenario(
        "brought-prune", {"A": continue_chain, "B": fork_chained, "P": prune}, chain
    ),
    Scenario(
        "brought-runs", {"A": second_life, "B": fork_chained, "P": delete_r2}, chain
    ),
    Scenario("brought-again", {"A": second_life, "P": prune, "R": delete_r2}, chain),
    Scenario(
        "brought-removals", {"A": fork_chained, "P": prune, "Q": delete_r2}, chain
    ),
    Scenario("brought-delete", {"P": delete_r2, "Q": delete}, chain),
    Scenario(
        "brought-skewed",
        {"A": second_life_skewed, "B": fork_skewed, "P": delete_r1_and_r2},
        skewed,
    ),
    Scenario("brought-dead", {"A": second_life, "P": delete_r2_and_r3}, chain),
    Scenario(
        "brought-read", {"A": second_life, "B": look, "P": prune}, chain, torn=True
    ),
    Scenario(
        "brought-lost",
        {"A": second_life, "P": prune},
        chain,
        losses=1,
        may_raise=LOST,
    ),
]
