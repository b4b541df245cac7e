"""What must not be folded is whole, whatever the width."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from jskv_saver.cli.tables import Column, print_table

columns = st.lists(
    st.builds(
        Column,
        name=st.sampled_from(["id", "name", "a long heading"]),
        right=st.booleans(),
        folds_to=st.sampled_from([None, None, 4, 12]),
        goes=st.integers(0, 3),
    ),
    min_size=1,
    max_size=6,
)


@given(columns, st.integers(0, 3), st.integers(1, 130), st.data())
def test_no_cell_is_folded_that_must_not_be(
    columns: list[Column], rows: int, width: int, data: st.DataObject
) -> None:
    # A mark of its own for each column, so that one can find it again.
    cells = [
        [
            chr(ord("a") + at) * data.draw(st.integers(1, 40))
            for at in range(len(columns))
        ]
        for _ in range(rows)
    ]
    file = io.StringIO()
    print_table(Console(file=file, width=width), columns, cells)
    table, _, hidden = file.getvalue().partition("no room here for: ")
    left_out = len(hidden.split(", ")) if hidden else 0
    words = table.split()
    whole = [
        all(row[at] in words for row in cells)
        for at, column in enumerate(columns)
        if column.folds_to is None
    ]
    assert whole.count(False) <= left_out
    assert left_out <= sum(column.goes > 0 for column in columns)
    if left_out < sum(column.goes > 0 for column in columns):
        assert max(map(len, table.splitlines())) <= width
