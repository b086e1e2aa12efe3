"""Reconciliation of a channel's downloaded statement with the orders and the ledger.

The command line calls `parse` and `reconcile`; nothing here changes an order.
"""
