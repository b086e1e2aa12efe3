"""Keys of the WSGI environ under which the code that handles a request leaves facts for the request log."""

ENDPOINT = "orders.endpoint"  # the route's name
CODE = "orders.code"  # of the response
MERCHANT = "orders.merchant"  # the API key of the authenticated merchant
REFUSED = "orders.refused"  # the code with which the HTTP server itself refuses the request
SINCE = "orders.since"  # monotonic time at which such a request began
