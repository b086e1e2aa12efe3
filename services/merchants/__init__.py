"""Merchants: their setup, channels and payout accounts, and the cache that requests read.

Requests read `cache`; commands and the console change merchants through `merchant_setup` and `links`.
"""
