"""The database: connections to SQLite or Postgres, transactions and errors."""
