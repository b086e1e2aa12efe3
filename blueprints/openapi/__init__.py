"""The OpenAPI document, built from the schemas, and the page that shows it."""
