"""After 0.4.0: merchants' settings of the payment page."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "payment_page" ("id" {id},
    "merchant_id" {int} NOT NULL,
    "return_url" {text} NOT NULL,
    "new_order_url" {text} NOT NULL,
    "contact" {text} NOT NULL,
    "color" {text} NOT NULL,
    "logo_type" {text} NOT NULL CHECK (logo_type IN ('', 'image/png', 'image/jpeg', 'image/webp')),
    "logo" {text} NOT NULL,
    "logo_digest" {text} NOT NULL,
    "updatetime" {int} NOT NULL,
    FOREIGN KEY ("merchant_id") REFERENCES "merchant" ("id"))""",
    'CREATE UNIQUE INDEX "payment_page_merchant_id" ON "payment_page" ("merchant_id")',
    'CREATE INDEX "payment_page_logo_digest" ON "payment_page" ("logo_digest")',  # each payer's browser asks for it
)
# A change raises the setup version.
SQLITE_TRIGGERS = tuple(
    f'CREATE TRIGGER payment_page_{verb.lower()}_revised AFTER {verb} ON "payment_page" '
    "BEGIN UPDATE revision SET number = number + 1; END"
    for verb in ("INSERT", "UPDATE", "DELETE")
)
POSTGRES_TRIGGERS = (
    'CREATE TRIGGER payment_page_revised AFTER INSERT OR UPDATE OR DELETE ON "payment_page" '
    "FOR EACH STATEMENT EXECUTE FUNCTION move_revision()",
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
    execute(database, POSTGRES_TRIGGERS if database.is_shared else SQLITE_TRIGGERS)
