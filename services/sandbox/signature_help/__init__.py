"""Signature help: `merchant_api.explain` and `epay.explain` tell which mistake made a signature wrong."""
