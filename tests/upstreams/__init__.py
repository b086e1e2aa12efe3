"""Upstreams on this machine: each speaks a real one's protocol, keeps its own records, and fails on request."""
