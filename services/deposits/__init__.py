"""Deposits (`buy`): placed, paid in one or several attempts, settled, claimed, expired, their exceptions resolved.

A report passes `settle.py`, and `money.py` decides what it does.
"""
