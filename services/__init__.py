"""The actions of the service on orders and money."""
