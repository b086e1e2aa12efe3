"""Request signatures and replay protection, encryption at rest, masking, and operators' accounts.

`vault` and `masking` are used everywhere, the rest by requests, the console
and commands.
"""
