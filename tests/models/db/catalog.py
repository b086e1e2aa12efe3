"""The catalog of the open database: its tables, constraints and triggers, to compare two schemas."""

from models.db.base import database
from tests import postgres

SQLITE = ("SELECT type, name, tbl_name FROM sqlite_master",)
POSTGRES = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name "
    "FROM information_schema.columns WHERE table_schema = 'public'",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = 'public'::regnamespace",
    "SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal",
)


def catalog() -> list[list[str]]:
    """The rows of each query as texts, sorted."""
    queries = POSTGRES if postgres.IN_USE else SQLITE
    return [sorted(map(str, database.execute_sql(query).fetchall())) for query in queries]
