"""Drivers, one file each, and their registry in `registry.py`: importing one driver does not import the others."""
