"""Backups and restores of the SQLite file, scheduled backups, and the copy to Postgres."""
