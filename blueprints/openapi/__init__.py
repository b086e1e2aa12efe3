"""The OpenAPI document, built from the schemas, and the documentation that the service serves."""
