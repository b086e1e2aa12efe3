"""The epay gateway: the addresses that shops' epay plug-ins call (docs/epay-inbound.md)."""
