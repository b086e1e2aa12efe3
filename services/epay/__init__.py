"""The epay gateway: deposits that shops ask for by the epay protocol (docs/epay-inbound.md).

Its blueprint places payments by `payments` and reads them by `queries`. Accounts and signatures are in
services/merchants, notices in services/callbacks.
"""
