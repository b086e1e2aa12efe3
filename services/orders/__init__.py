"""The life of an order: create, settle by channel reports, pay out, expire, and resolve exceptions.

Other packages call `create`, `settle`, `payouts`, `due`, `attempts`, `progress`, `claims` and `exceptions`.
`lifecycle` is the only writer of an order's status. Imports: ledger, channels, callbacks (the outbox), merchants,
security, platform.
"""
