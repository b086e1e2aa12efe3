"""Withdrawals (`sell`): placed with their money held, approved or rejected, sent, settled, their exceptions resolved.

`approve.py`, `send.py` and `settle.py` in this order are the way of a payout.
"""
