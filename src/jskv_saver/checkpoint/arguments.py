"""What callers give beside configs, refused by name before anything is sent. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from jskv_saver.errors import InvalidRequestError

_Called = TypeVar("_Called", bound=Callable[..., object])


def parse_flag(name: str, value: object) -> bool:
    """A switch: "false" of a configuration file is no False, and None none.

    Raises:
        InvalidRequestError: It is neither True nor False.
    """
    if not isinstance(value, bool):
        raise InvalidRequestError(f"{name} must be True or False, not {value!r:.80}")
    return value


def parse_call(name: str, value: _Called | None) -> _Called | None:
    """What is called, or None.

    Raises:
        InvalidRequestError: It cannot be called.
    """
    if value is not None and not callable(value):
        raise InvalidRequestError(f"{name} must be a function, not {value!r:.80}")
    return value


def parse_mapping(name: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A mapping.

    Raises:
        InvalidRequestError: It is none.
    """
    # A dict is known for one without the slow question of an abstract class.
    if type(value) is not dict and not isinstance(value, Mapping):
        raise InvalidRequestError(
            f"{name} must be a mapping, not {type(value).__name__}: {value!r:.80}"
        )
    return value


def parse_channels(channels: Sequence[str]) -> list[str]:
    """The names of channels.

    Raises:
        InvalidRequestError: It is a single one, or no sequence of names.
    """
    if isinstance(channels, str | bytes | Mapping) or not isinstance(
        channels, Iterable
    ):
        raise InvalidRequestError(
            f"channels must be a sequence of names, not {channels!r:.80}"
        )
    names = list(channels)
    check_channels(names)
    return names


def check_channels(names: Iterable[object]) -> None:
    """Names of channels.

    Raises:
        InvalidRequestError: One is no text.
    """
    for name in names:
        if not isinstance(name, str):
            raise InvalidRequestError(
                f"the name of a channel must be a str, not {type(name).__name__}: "
                f"{name!r:.80}"
            )


def parse_writes(writes: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Pairs of channel and value.

    Raises:
        InvalidRequestError: They are none.
    """
    if isinstance(writes, str | bytes | Mapping) or not isinstance(writes, Iterable):
        raise InvalidRequestError(
            f"writes must be pairs of channel and value, not {writes!r:.80}"
        )
    pairs: list[tuple[str, Any]] = []
    for pair in writes:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidRequestError(
                f"a write must be a pair of channel and value, not {pair!r:.80}"
            )
        pairs.append((pair[0], pair[1]))
    check_channels(channel for channel, _ in pairs)
    return pairs


def parse_path(path: object) -> str:
    """The path of a task, by which writes are sorted.

    Raises:
        InvalidRequestError: It is no text.
    """
    if not isinstance(path, str):
        raise InvalidRequestError(
            f"task_path must be text, not {type(path).__name__}: {path!r:.80}"
        )
    return path


def check_serde(serde: object) -> None:
    """A serialiser, or None.

    Raises:
        InvalidRequestError: It has not the methods of one.
    """
    if serde is None:
        return
    for names in (("dumps_typed", "loads_typed"), ("dumps", "loads")):
        if all(callable(getattr(serde, name, None)) for name in names):
            return
    raise InvalidRequestError(
        "serde must be a serialiser with dumps_typed and loads_typed, such as "
        f"JsonPlusSerializer(), not {serde!r:.80}"
    )
