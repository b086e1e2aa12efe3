"""The console's pages, one file per page."""
