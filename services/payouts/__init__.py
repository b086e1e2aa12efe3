"""The work on many payouts at once: bulk actions and bank batch files."""
