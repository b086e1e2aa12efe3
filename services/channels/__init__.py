"""Payment channels: setting them up, calling their drivers, and limiting how many calls wait.

Other packages call drivers through `calls`, take a place in `bulkhead` first, and use `order_numbers`.
"""
