"""Signature help: `merchant_api.explain` and `epay.explain` tell which of the known mistakes made a signature wrong."""
