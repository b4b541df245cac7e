"""Ways through the schedules of a scenario: all of them, some of them, one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from time import perf_counter

from tests.explorer.checks import Checker
from tests.explorer.game import Game
from tests.explorer.plays import LOST, Key
from tests.explorer.positions import Cast, Position
from tests.explorer.table import Scenario, Table


class Found(AssertionError):
    """A schedule that breaks an invariant.

    Attributes:
        trace: The choices that lead there.
    """

    def __init__(
        self, scenario: Scenario, game: Game | Position, why: BaseException
    ) -> None:
        self.trace = list(game.trace)
        super().__init__(
            f"{scenario.name}: {why}\n"
            f"replay: {scenario.name} {' '.join(self.trace)}\n" + "\n".join(game.log)
        )


class Impossible(ValueError):
    """A schedule has a choice that its scenario does not have in that place."""


Choose = Callable[[Sequence[str], int], str]
Names = frozenset[str]
Todo = list[tuple[Position, str, Names]]
"""Where to go on, with which choice, and what need not be tried from there."""


def by_chance(seed: int) -> Choose:
    """Chooses bursts of one actor each, some short, some to its end."""
    dice = random.Random(seed)
    turn, left = "", 0

    def choose(choices: Sequence[str], at: int) -> str:
        nonlocal turn, left
        mine = [each for each in choices if each[0] == turn]
        if at == 0 or not left or not mine:
            turn = dice.choice(sorted({each[0] for each in choices}))
            left = dice.choice((1, 1, 2, 3, 5, 8, 99))
            mine = [each for each in choices if each[0] == turn]
        left -= 1
        lost = [0.05 if each.endswith(LOST) else 1 for each in mine]
        return dice.choices(mine, lost)[0]

    return choose


@dataclass
class Report:
    """What a search has done.

    Attributes:
        runs: Executions, each from the beginning.
        steps: Messages that were let through, replayed ones included.
        states: Different states that were met.
        readable: Different ones for a reader, each of which was checked.
        ends: The states in which nobody is left.
        complete: Whether there is nothing more.
        seconds: How long it took.
    """

    runs: int = 0
    steps: int = 0
    states: int = 0
    readable: int = 0
    ends: set[Key] = field(default_factory=set)
    complete: bool = False
    seconds: float = 0.0

    def __str__(self) -> str:
        rate = self.runs / self.seconds if self.seconds else 0
        return (
            f"{self.runs:,} schedules, {self.states:,} states, {self.readable:,} "
            f"different to a reader, {len(self.ends):,} ends, {self.steps:,} messages, "
            f"{self.seconds:.1f} s, {rate:.0f} schedules a second"
            f"{'' if self.complete else ', not complete'}"
        )


class Search:
    """Searches a scenario.

    Args:
        scenario: Which.
        check: Whether the invariants are checked.
        recovery: Of every how many states it is checked as well what is left if
            all die there; 0: of none.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        check: bool = True,
        recovery: int = 1,
    ) -> None:
        self.scenario = scenario
        self.report = Report()
        self._check = check
        self._recovery = recovery
        self.readable: set[Key] = set()
        # For each state, the choices that need not be tried from there.
        self._asleep: dict[Key, Names] = {}
        self._names: dict[Names, Names] = {}

    def everything(self, most: int | None = None, seconds: float = inf) -> Report:
        """All schedules, up to a number of them, or for a while."""
        with Table(self.scenario) as table:
            checker = Checker(table, self._recovery)
            cast = Cast(table)
            todo = [(cast.beginning(), "", frozenset[str]())]

            def explore() -> None:
                end = perf_counter() + seconds
                while todo and self.report.runs != most and perf_counter() < end:
                    # Deepest first: little is remembered.
                    self._follow(checker, *todo.pop(), todo)

            try:
                self._timed(explore)
            finally:
                cast.close()
            self.report.complete = not todo
        return self.report

    def every_order(self) -> Report:
        """All schedules one by one, without any reduction: of small scenarios."""
        with Table(self.scenario) as table:
            checker = Checker(table, self._recovery)
            todo: list[tuple[str, ...]] = [()]

            def explore() -> None:
                while todo:
                    self._every(table, checker, todo.pop(), todo)

            self._timed(explore)
            self.report.complete = True
        return self.report

    def some(self, seed: int, seconds: float, most: int | None = None) -> Report:
        """Schedules by chance, for a while, in bursts of one actor each."""
        with Table(self.scenario) as table:
            checker = Checker(table, self._recovery)
            choose = by_chance(seed)

            def play() -> None:
                end = perf_counter() + seconds
                while perf_counter() < end:
                    self._play(table, checker, choose)
                    if self.report.runs == most:
                        break

            self._timed(play)
        return self.report

    def games(self, seed: int, number: int) -> list[Game]:
        """Schedules by chance, as they were played."""
        choose = by_chance(seed)
        with Table(self.scenario) as table:
            checker = Checker(table, self._recovery)
            return [self._play(table, checker, choose) for _ in range(number)]

    def replay(self, trace: Sequence[str], *, exact: bool = True) -> Game:
        """One schedule; what it does not say, the first choice does.

        Args:
            trace: The choices.
            exact: Whether each of them has to be possible in its turn.

        Raises:
            Impossible: One is not.
        """
        rest = list(trace)

        def choose(choices: Sequence[str], at: int) -> str:
            while rest:
                choice = rest.pop(0)
                if choice in choices:
                    return choice
                if exact:
                    raise Impossible(
                        f"choice {at + 1}, {choice!r}, is not possible there; possible "
                        f"are: {' '.join(choices)}"
                    )
            return choices[0]

        with Table(self.scenario) as table:
            return self._play(table, Checker(table, self._recovery), choose)

    def _timed(self, search: Callable[[], None]) -> None:
        began = perf_counter()
        try:
            search()
        finally:
            self.report.seconds = perf_counter() - began
            self.report.states = len(self._asleep) or len(self.readable)
            self.report.readable = len(self.readable)

    def _look(self, game: Game | Position, checker: Checker) -> Key:
        """Check a state."""
        readable = game.readable_key()
        self.readable.add(readable)
        if self._check:
            try:
                checker.check(game, readable)
            except Exception as exc:
                raise Found(self.scenario, game, exc) from exc
        return readable

    def _play(
        self,
        table: Table,
        checker: Checker,
        choose: Choose,
    ) -> Game:
        game = Game(table)
        try:
            while choices := game.choices():
                game.step(choose(choices, len(game.trace)))
                self.report.steps += 1
                self._look(game, checker)
            self.report.ends.add(game.readable_key())
        finally:
            self.report.runs += 1
            game.close()
        return game

    def _every(
        self,
        table: Table,
        checker: Checker,
        prefix: tuple[str, ...],
        todo: list[tuple[str, ...]],
    ) -> None:
        """Follow a prefix, then the first choices; note the others."""
        game = Game(table)
        try:
            for choice in prefix:
                game.step(choice)
            self.report.steps += len(prefix)
            while True:
                readable = self._look(game, checker)
                choices = game.choices()
                if not choices:
                    self.report.ends.add(readable)
                    return
                path = tuple(game.trace)
                todo += [(*path, choice) for choice in choices[:0:-1]]
                game.step(choices[0])
                self.report.steps += 1
        finally:
            self.report.runs += 1
            game.close()

    def _follow(
        self, checker: Checker, at: Position, choice: str, asleep: Names, todo: Todo
    ) -> None:
        """Follow a choice, then the first ones; note the others."""
        self.report.runs += 1
        if choice:
            at = at.after(choice)
            self.report.steps += 1
        while True:
            readable = self._look(at, checker)
            key = at.key(readable)
            choices = at.choices()
            if not choices:
                self.report.ends.add(readable)
                self._asleep[key] = frozenset()
                return
            tried = [each for each in choices if each not in asleep]
            known = self._asleep.get(key)
            if known is not None:
                # Only what was asleep before, and is awake now.
                tried = [each for each in tried if each in known]
                self._sleeps(key, known & asleep)
                # What was tried from here is as good as asleep.
                asleep = asleep | (frozenset(choices) - known)
            else:
                self._sleeps(key, asleep)
            if not tried:
                return
            then = [
                frozenset(
                    each
                    for each in asleep.union(tried[:number])
                    if at.independent(each, one)
                )
                for number, one in enumerate(tried)
            ]
            for one, sleeping in zip(tried[:0:-1], then[:0:-1], strict=True):
                todo.append((at, one, sleeping))
            at = at.after(tried[0])
            self.report.steps += 1
            asleep = then[0]

    def _sleeps(self, key: Key, asleep: Names) -> None:
        # There are few different ones, and one for each state.
        self._asleep[key] = self._names.setdefault(asleep, asleep)
