"""The HTTP interface: API, payment page, console, documentation and sandbox."""
