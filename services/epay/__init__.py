"""The epay gateway: deposits that shops ask for by the epay protocol (docs/epay-inbound.md).

Its blueprint places payments and reads them through `payments`. Accounts and signatures are in services/merchants,
notices in services/callbacks.
"""
