"""Payment channels: their setup, the calls of their drivers, and limits on waiting calls.

Other packages call drivers through `calls`, take a place in `bulkhead` first, and use `order_numbers`.
"""
