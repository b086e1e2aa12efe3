"""Signature help: `merchant_api.explain` and `epay.explain` tell which of the `mistakes` made a signature wrong."""
