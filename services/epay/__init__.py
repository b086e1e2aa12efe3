"""The epay gateway: deposits that shops ask for by the epay protocol (docs/epay-inbound.md).

Its blueprint places payments by `payments`, reads them by `queries`, and refunds them by `refunds`. Accounts and
signatures are in services/merchants, notices in services/callbacks.
"""
