"""The double-entry ledger: accounts and balances, the postings of each event, fees, and integrity checks.

Other packages post through `accounts.post` with amounts of `postings` and quote by `fees`. Amounts are integer fen.
"""
