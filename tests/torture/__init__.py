"""Crash torture: clients, a receiver and a killer around a real service, and claims about what is left."""
