"""Tables and the invariants that the database itself enforces."""
