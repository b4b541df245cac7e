"""Ages and moments as callers give them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from jskv_saver.errors import InvalidRequestError

Age: TypeAlias = float | timedelta
"""How long ago: in seconds, or a `timedelta`."""
_MOST_SECONDS: Final = timedelta.max.total_seconds() / 2


def parse_age(name: str, age: Age) -> timedelta:
    """An age, refused under the name that it was given by.

    Raises:
        InvalidRequestError: It is none, or negative.
    """
    if isinstance(age, timedelta):
        parsed = age
    elif (
        isinstance(age, int | float)
        and not isinstance(age, bool)
        # As numbers, without a conversion: an int may be too large for a float.
        and -_MOST_SECONDS <= age <= _MOST_SECONDS
    ):
        parsed = timedelta(seconds=age)
    else:
        raise InvalidRequestError(
            f"{name} must be a number of seconds or a timedelta, not {age!r:.80}"
        )
    if parsed < timedelta(0):
        raise InvalidRequestError(f"{name} must not be negative: {age!r}")
    return parsed


def moment_before(age: timedelta, now: datetime) -> datetime:
    """The moment that long ago; the first one there is, if that is too long ago."""
    first = datetime.min.replace(tzinfo=UTC)
    return now - age if age < now - first else first


def parse_moment(name: str, value: Age | datetime, now: datetime) -> datetime:
    """A moment: given as such, or by how long ago it was.

    Raises:
        InvalidRequestError: It is neither, or has no time zone.
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidRequestError(
                f"{name} needs a time zone: {value!r}; e.g. datetime.now(UTC)"
            )
        return value.astimezone(UTC)
    return moment_before(parse_age(name, value), now)


def parse_count(name: str, count: int) -> int:
    """A number of checkpoints to keep.

    Raises:
        InvalidRequestError: It is no whole number from 1.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidRequestError(
            f"{name} must be a whole number from 1, not {count!r:.80}; what is to go "
            "as a whole is deleted with delete_thread"
        )
    return count
