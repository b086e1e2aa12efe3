"""Merchants: their setup, channels, payout accounts and payment pages, and the cache that requests read.

Requests read `cache`; commands and the console change merchants through `merchant_setup`, `links` and `payment_page`.
"""
