"""Tests against a real platform that the user supplies; each runs on demand only (CONTRIBUTING.md)."""
