"""Measured claims, one command: `python -m bench`."""
