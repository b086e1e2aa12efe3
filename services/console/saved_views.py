"""Saved views: the filters of a list that an operator keeps under a name."""

from __future__ import annotations

from models.db.base import database
from models.db.writer import transaction
from models.tables.operator import Operator, SavedView
from runtime import clock
from services.errors import N_, OperatorError

MOST = 20  # of one operator for one list
LONGEST_NAME = 40  # characters


def of(operator: Operator, list_name: str) -> list[SavedView]:
    """Return the operator's views of a list, by name."""
    own = SavedView.select().where(SavedView.operator == operator, SavedView.list_name == list_name)
    return list(own.order_by(SavedView.name))


@transaction
def save(operator: Operator, list_name: str, name: str, query: str) -> None:
    """Save the filters `query`, a query string; a view of the same name is replaced. Raises OperatorError."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise OperatorError(N_("A view's name has 1 to %(most)s characters."), most=str(LONGEST_NAME))
    database.advisory_lock("saved views")
    others = [view for view in of(operator, list_name) if view.name != name]
    if len(others) >= MOST:
        raise OperatorError(N_("A list has at most %(most)s saved views. Delete one first."), most=str(MOST))
    delete(operator, list_name, name)
    SavedView.create(operator=operator, list_name=list_name, name=name, query=query, createtime=clock.now())


@transaction
def delete(operator: Operator, list_name: str, name: str) -> None:
    """Delete the operator's view of this name, if there is one."""
    own = (SavedView.operator == operator) & (SavedView.list_name == list_name) & (SavedView.name == name)
    SavedView.delete().where(own).execute()
