"""Files of banks, wallets and channels: read, compared with the orders and the ledger, matched with claims.

Others call `compare_file` and `kept_results`, `received` and `claims`. Of all this, only a fetched bill changes orders:
`bills` records the refunds in it, and `differences` checks orders at their channels.
"""
