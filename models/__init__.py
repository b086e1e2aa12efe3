"""Tables and their invariants."""
