"""The verbs: what the service does with orders and money."""
