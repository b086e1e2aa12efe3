"""Refunds of deposits: place, approve, send, money, settle, resolve, in reading order.

A refund addresses one payment at the channel. Its row and its reserve are committed before the channel is called, and
every request has the same number.
"""
