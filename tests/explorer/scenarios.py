"""The scenarios: two writers, and one who removes.

Writer A continues the head; writer B forks from an old checkpoint. The thread is
small, and every value so large that it is kept in parts: in some that records bring
themselves, and in some apart.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from tests.explorer.actors import Actor, Script
from tests.explorer.leasing import LEASING, TINY_LEASE
from tests.explorer.lending import LENDING
from tests.explorer.sizes import LARGE
from tests.explorer.table import Scenario

from jskv_saver.errors import (
    DocumentNotFoundError,
    UnknownOutcomeError,
    WriterConflictError,
)

# -- what was before -------------------------------------------------------------------


async def nothing(actor: Actor) -> None:
    """An empty namespace: its first put is fenced on nothing."""


async def pair(actor: Actor) -> None:
    """Two checkpoints of two runs; the second brings its new bytes itself."""
    await actor.put("1", apart=True, run_id="r1")
    await actor.put("2", "1", run_id="r2")
    await actor.write("1", "t0", "d of 1")


async def bare(actor: Actor) -> None:
    """Two of which the second has no new bytes: few messages remove it."""
    await actor.put("1", run_id="r1")
    await actor.put("2", "1", grow=False, run_id="r2")


async def deltas(actor: Actor) -> None:
    """The channel `d` of 3 is spread over 1 and 2."""
    await actor.put("1", run_id="r1")
    await actor.write("1", "t0", "d of 1")
    await actor.put("2", "1", delta=True, run_id="r2")
    await actor.write("2", "t0", "d of 2")


async def delta_chain(actor: Actor) -> None:
    """All but 1 are of one run, each on top of the other.

    They need nothing of each other but for the history of `d`.
    """
    await actor.put("1", run_id="r1")
    for id, parent in (("2", "1"), ("3", "2")):
        await actor.write(parent, "t0", f"d of {parent}")
        await actor.put(id, parent, delta=True, grow=False, run_id="r2")


async def pruned(actor: Actor) -> None:
    """2 was removed, and will be put again."""
    await pair(actor)
    await actor.delete_runs("r2")


# -- what they do ----------------------------------------------------------------------


async def continue_head(actor: Actor) -> None:
    await actor.read()
    await actor.put("4", "2", apart=True)


async def continue_and_write(actor: Actor) -> None:
    await actor.read()
    await actor.put("4", "2", grow=False)
    await actor.write("4", "t1", "d of 4")


async def write_and_continue(actor: Actor) -> None:
    """As a run does that resumes: writes first, then the next checkpoint."""
    await actor.read()
    await actor.write("2", "t1", "d of 2, late")
    await actor.put("4", "2", delta=True)


async def fork_old(actor: Actor) -> None:
    await actor.read("1")
    await actor.put("3", "1", apart=True)


async def fork_delta(actor: Actor) -> None:
    """A fork that needs what its parent and its grandparents hold."""
    await actor.put("3", "1", delta=True)


async def fork_chain(actor: Actor) -> None:
    await actor.put("5", "1", delta=True)


async def fork_higher(actor: Actor) -> None:
    await actor.put("5", "1", grow=False)


async def first(actor: Actor) -> None:
    await actor.put("1", apart=True)
    await actor.put("3", "1")


async def first_too(actor: Actor) -> None:
    await actor.put("2")


async def large_writes(actor: Actor) -> None:
    """To an old checkpoint, beside whoever removes it."""
    await actor.write("1", "t1", "w" * LARGE)


async def writes_before(actor: Actor) -> None:
    """Writes, then the checkpoint that they belong to."""
    await actor.write("4", "t1", "w" * LARGE)
    await actor.put("4", "2")


async def writes_twice(actor: Actor) -> None:
    await actor.write("2", "t1", f"{actor.name} 0")
    await actor.write("2", "t1", f"{actor.name} again", f"{actor.name} 1")


async def special_twice(actor: Actor) -> None:
    await actor.write("2", "t1", f"{actor.name} 0", special=True)
    await actor.write("2", "t1", f"{actor.name} 1", special=True)


async def put_again(actor: Actor) -> None:
    """What was removed has a second life."""
    await actor.put("2", "1", run_id="r2")
    await actor.write("2", "t1", "second life")
    await actor.put("6", "2", delta=True)


async def second_life(actor: Actor) -> None:
    await actor.put("2", "1", run_id="r2")


async def put_again_large(actor: Actor) -> None:
    await actor.write("2", "t1", "w" * LARGE)
    await actor.put("2", "1", run_id="r2")


async def put_again_written(actor: Actor) -> None:
    """Writes to what is removed meanwhile, and then has a second life."""
    await actor.write("2", "t1", "d of 2, once more")
    await actor.put("2", "1", run_id="r2")


async def prune(actor: Actor) -> None:
    await actor.prune()


async def delete_r2_twice(actor: Actor) -> None:
    """The second time nothing is left to do, but what the first one named."""
    await actor.delete_runs("r2")
    await actor.repair()


async def prune_then_repair(actor: Actor) -> None:
    await actor.prune()
    await actor.repair()


async def repair(actor: Actor) -> None:
    await actor.repair()


async def delete_r2(actor: Actor) -> None:
    """Takes the head, where it may."""
    await actor.delete_runs("r2")


async def delete_r1(actor: Actor) -> None:
    await actor.delete_runs("r1")


async def delete(actor: Actor) -> None:
    await actor.delete()


def scenario(
    name: str, before: Script, actors: dict[str, Script], **options: object
) -> Scenario:
    return Scenario(name, actors, before, **options)  # type: ignore[arg-type]


GONE = (DocumentNotFoundError,)
LOST = (UnknownOutcomeError, DocumentNotFoundError)

ALL = [
    scenario("two-prune", pair, {"A": continue_head, "B": fork_old, "P": prune}),
    scenario("two-runs", pair, {"A": continue_head, "B": fork_old, "P": delete_r2}),
    scenario("two-delete", pair, {"A": continue_head, "B": fork_old, "P": delete}),
    scenario(
        "two-repair",
        pruned,
        {"A": put_again, "B": fork_old, "P": repair},
        may_raise=GONE,
    ),
    scenario(
        "again-repair", pair, {"A": put_again, "P": delete_r2_twice}, may_raise=GONE
    ),
    scenario("first-writes", nothing, {"A": first_too, "B": large_writes}),
    scenario("delta-order", delta_chain, {"B": fork_chain, "P": delete_r2}),
    scenario("first-delete", nothing, {"A": first, "B": first_too, "P": delete}),
    scenario("first-repair", nothing, {"A": first, "B": first_too, "P": repair}),
    scenario(
        "delta-prune",
        deltas,
        {"A": write_and_continue, "B": fork_delta, "P": prune},
        may_raise=GONE,
    ),
    scenario(
        "delta-runs",
        deltas,
        {"A": write_and_continue, "B": fork_delta, "P": delete_r2},
        may_raise=GONE,
    ),
    scenario("writes-prune", pair, {"A": writes_before, "B": large_writes, "P": prune}),
    scenario(
        "writes-delete", pair, {"A": writes_before, "B": large_writes, "P": delete}
    ),
    scenario("same-task", pair, {"A": writes_twice, "B": writes_twice, "P": delete_r2}),
    scenario("special", pair, {"A": special_twice, "B": special_twice, "P": delete_r2}),
    scenario(
        "again-runs",
        pair,
        {"A": put_again, "B": fork_higher, "P": delete_r2},
        may_raise=GONE,
    ),
    scenario("again-twice", bare, {"A": second_life, "P": delete_r2, "R": prune}),
    scenario("again-large", pair, {"A": put_again_large, "P": delete_r2, "R": prune}),
    scenario(
        "again-written", pair, {"A": put_again_written, "P": delete_r2, "R": prune}
    ),
    scenario(
        "again-mended", pair, {"A": put_again_written, "P": delete_r2, "R": repair}
    ),
    scenario(
        "two-removals", pair, {"A": continue_and_write, "P": prune, "Q": delete_r2}
    ),
    scenario("removal-repair", pair, {"A": fork_old, "P": delete_r1, "Q": repair}),
    scenario(
        "lost-prune",
        pair,
        {"A": continue_head, "P": prune},
        losses=1,
        may_raise=LOST,
    ),
    scenario(
        "lost-runs", pair, {"A": put_again, "P": delete_r2}, losses=1, may_raise=LOST
    ),
    scenario(
        "lost-first", nothing, {"A": first, "P": delete}, losses=1, may_raise=LOST
    ),
    scenario(
        "lost-writes",
        pair,
        {"A": large_writes, "B": continue_and_write},
        losses=1,
        may_raise=LOST,
    ),
    scenario(
        "lost-delta",
        deltas,
        {"A": fork_delta, "P": delete_r2},
        losses=1,
        may_raise=LOST,
    ),
    scenario("torn-prune", pair, {"B": fork_old, "P": prune}, torn=True),
    scenario("torn-runs", pair, {"A": continue_head, "P": delete_r2}, torn=True),
    scenario(
        "conflict",
        pair,
        {"A": continue_head, "B": fork_higher, "P": prune},
        options={"on_conflict": "raise"},
        may_raise=(WriterConflictError,),
    ),
    *LENDING,
    *LEASING,
]
SCENARIOS = {each.name: each for each in ALL}
PAIRS = {
    each.name: each
    for whole in ALL
    for letters in combinations(whole.actors, 2)
    for each in [
        replace(
            whole,
            name=f"{whole.name}:{''.join(letters)}",
            actors={letter: whole.actors[letter] for letter in letters},
        )
    ]
    if len(whole.actors) > 2
}
"""Of each scenario of three any two: few enough schedules to try them all."""


# -- so small that all orders of their messages can be tried ---------------------------


async def small_put(actor: Actor) -> None:
    await actor.put("3", "1", grow=False)


async def small_write(actor: Actor) -> None:
    await actor.write("2", "t1", actor.name)


TINY = {
    each.name: each
    for each in (
        scenario(
            "tiny-writes", pair, {"A": small_write, "B": small_write, "P": delete}
        ),
        scenario("tiny-large", pair, {"A": large_writes, "P": delete}),
        scenario("tiny-put", pair, {"A": small_put, "B": small_write, "P": delete}),
        scenario(
            "tiny-lost", pair, {"A": small_put, "P": delete}, losses=1, may_raise=LOST
        ),
        TINY_LEASE,
    )
}
