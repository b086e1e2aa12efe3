"""What all kinds of orders share: their insertion, the steps of their life, the words of reasons and verdicts.

`lifecycle` is the only writer of an order's status. It knows no kind: `services/kinds.py` does.
"""
