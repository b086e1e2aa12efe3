"""Files of banks, wallets and channels: read, compared with the orders and the ledger, matched with claims.

Others call `compare_file` and `kept_results`, `received` and `claims`. Nothing here changes an order.
"""
