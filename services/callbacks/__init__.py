"""Callbacks to merchants: the outbox (database), delivery (network), redelivery and test callbacks.

The order packages call `outbox.enqueue` inside their transaction; jobs call `delivery.sweep`. `returns` has the signed
addresses at which payers return to the merchant.
"""
