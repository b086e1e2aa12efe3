"""The sandbox: simulated upstream, inbox for callbacks, adjustable clock, demo data, signature help.

Only demo mode serves it; commands use `seeding` and `signature_help`.
"""
