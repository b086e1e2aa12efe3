"""Tillbook as one package: the tree of the repository, so that no top-level name but this one is installed."""
