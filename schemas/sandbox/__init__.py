"""The sandbox's forms."""
