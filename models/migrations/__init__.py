"""Numbered steps from each released schema to the next; a new database starts from the models."""
