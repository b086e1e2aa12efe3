"""Upstreams on this machine: each speaks a real one's protocol, keeps books of its own, and misbehaves when told to."""
