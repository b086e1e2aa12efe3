"""The served application, and the HTTP server that runs it. Commands other than `serve` do not import it."""
