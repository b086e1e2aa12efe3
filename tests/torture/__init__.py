"""Crash torture: clients, a receiver and a killer around a real service, and claims about the result."""
