"""Deposits on manual channels that their payers claim to have paid: decide on many, match them with a statement."""
