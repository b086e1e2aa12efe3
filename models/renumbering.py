"""Renumber orders by their time after some were inserted with a past time, as seed data is."""

from __future__ import annotations

from peewee import SQL, fn

from models.db.base import database
from models.db.writer import transaction
from models.tables.order import Order
from models.tables.order_counts import BUCKET, OrderCount


@transaction
def renumber() -> None:
    """Renumber all orders by their time, and count them again; do nothing if they are in order."""
    later = Order.alias()
    turned = (
        Order.select(Order.id)
        .join(later, on=((later.merchant == Order.merchant) & (later.seq == Order.seq + 1)))
        .where(later.createtime < Order.createtime)
    )
    if not turned.exists():
        return
    Order.update(seq=0 - Order.seq).execute()
    database.execute_sql(
        """UPDATE "order" SET seq = rank FROM (
            SELECT id AS row_id, ROW_NUMBER() OVER (PARTITION BY merchant_id ORDER BY createtime, id) AS rank
            FROM "order"
        ) AS ranked WHERE id = row_id"""
    )
    OrderCount.delete().execute()
    bucket = Order.seq / SQL(str(BUCKET))  # written out, so that the database sees that both are the same
    cell = (Order.merchant, Order.order_type, Order.status, bucket)
    counted = Order.select(*cell, fn.COUNT(Order.id)).group_by(*cell)
    OrderCount.insert_from(
        counted, [OrderCount.merchant, OrderCount.order_type, OrderCount.status, OrderCount.bucket, OrderCount.count]
    ).execute()
