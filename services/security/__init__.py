"""Request signatures and replay protection, encryption at rest, masking, and operators' accounts.

All packages use `vault` and `masking`; requests, the console and commands use the rest.
"""
