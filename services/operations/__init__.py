"""What operators do with orders, one by one or many at once, and what waits for them."""
