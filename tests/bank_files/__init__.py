"""Files as banks and wallets write them, made from random lives whose truth is known.

`lives` makes the facts, `layouts` writes them as statements, `corruptions` damages such a statement, and `results`
writes the result files of batches of payouts. Nothing here was written with knowledge of the service's reader: the
layouts follow public examples of real exports.
"""
