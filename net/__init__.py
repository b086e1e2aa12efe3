"""Outbound connections: HTTP with a deadline and a limit of bytes, and which addresses may be called."""
