"""Queries that are compiled once: peewee takes far longer to generate SQL than SQLite takes to run it."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import update_wrapper
from itertools import count
from typing import Any

from peewee import Value

from runtime.state import current


class _Place:
    """A parameter of the SQL: the number of the value that each call passes there."""

    def __init__(self, number: int):
        self.number = number


class _Sql:
    """The SQL of a query, for one kind of database and one shape of its values."""

    def __init__(self, query: Any):
        self.text, parameters = query.sql()
        self._fixed = [each for each in parameters if type(each) is not _Place]
        fixed = count(-len(self._fixed))  # these follow the values of a call
        self.places = [each.number if type(each) is _Place else next(fixed) for each in parameters]
        self.row: Callable[[Any], Any] | None = None  # makes an object of a row

    def parameters(self, values: list[Any]) -> list[Any]:
        """Return the parameters for the values of one call."""
        given = values + self._fixed
        return [given[place] for place in self.places]


class Compiled:
    """A function that returns a peewee query, and whose calls run it.

    Arguments go to the database unchanged: integers, strings, booleans; the elements of a tuple one by one. `== None`
    means IS NULL, as in peewee. The function must not look at the arguments, which are not the values.
    """

    def __init__(self, build: Callable[..., Any], table: Any = None):
        self._build, self._table = build, table
        self._known: dict[tuple[Any, ...], _Sql] = {}
        update_wrapper(self, build)

    def __call__(self, *arguments: Any, **columns: Any) -> Any:
        """Run the query; return its rows, or the number of changed rows if it has none."""
        values: list[Any] = []
        shape: list[Any] = [*columns]
        for each in (*arguments, *columns.values()):
            if each is None:
                shape.append(None)
            elif type(each) is tuple:
                shape.append(len(each))
                values += each
            else:
                shape.append("")
                values.append(each)
        sql = self._sql(shape, arguments, columns)
        cursor = current().database.execute_sql(sql.text, sql.parameters(values))
        if cursor.description is None:
            return cursor.rowcount
        row = sql.row = sql.row or self._row_of([column[0] for column in cursor.description])
        return [row(each) for each in cursor.fetchall()]

    def first(self, *arguments: Any, **columns: Any) -> Any:
        """Run the query; return its first row, or None."""
        return next(iter(self(*arguments, **columns)), None)

    def insert(self, rows: list[dict[str, Any]]) -> Any:
        """Run an INSERT of one row, which has these columns, as one statement for many rows; return the cursor."""
        columns = rows[0]
        sql = self._sql(list(columns), (), dict.fromkeys(columns, ""))
        row = f"({', '.join([current().database.param] * len(sql.places))})"
        text = sql.text.replace(row, ", ".join([row] * len(rows)), 1)
        parameters = [each for values in rows for each in sql.parameters([values[name] for name in columns])]
        return current().database.execute_sql(text, parameters)

    def _sql(self, shape: list[Any], arguments: tuple[Any, ...], columns: dict[str, Any]) -> _Sql:
        key = (type(current().database), *shape)
        if (known := self._known.get(key)) is not None:
            return known
        numbers = count()

        def one() -> Value:
            return Value(_Place(next(numbers)), converter=False)

        def place(value: Any) -> Any:
            return [one() for _ in value] if type(value) is tuple else None if value is None else one()

        places = [place(each) for each in arguments]
        query = self._build(*places, **{name: place(value) for name, value in columns.items()})
        known = self._known[key] = _Sql(query)
        return known

    def _row_of(self, names: list[str]) -> Callable[[Any], Any]:
        table = self._table
        if table is None:
            row: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]
            return row._make
        fields = [table._meta.columns[name].name for name in names]
        return lambda values: table(**dict(zip(fields, values, strict=True)))


def compiled(build: Callable[..., Any]) -> Compiled:
    """Decorate a function that returns a query; its rows are named tuples of the selected columns.

    `first(...)` returns the first row or None; of an UPDATE or a DELETE, a call returns the number of rows.
    """
    return Compiled(build)


def compiled_rows(table: Any) -> Callable[[Callable[..., Any]], Compiled]:
    """Like `compiled`, for a query that selects rows of this table: they are returned as its objects."""
    return lambda build: Compiled(build, table)
