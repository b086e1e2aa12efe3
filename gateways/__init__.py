"""Drivers, one file each, and their registry in `registry.py`. Importing one driver does not import the others."""
