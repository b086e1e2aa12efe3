"""Queries that stay fast at any number of orders: keyset pages, counts, search."""
