"""Backups of an instance, and their restore as an operator would do it."""

from pathlib import Path

from tests import applications, databases, postgres
from tests.support import Service


class Backup:
    """A backup of an instance: a file on SQLite, a copy of the database on Postgres."""

    def __init__(self, instance: Path, folder: Path):
        self.instance, self.file, self.name = instance, folder / "backup.sqlite", ""
        databases.disconnect()
        if postgres.IN_USE:
            self.name = postgres.cluster().create(databases._name(databases._url(instance)))
        else:
            self.file.unlink(missing_ok=True)
            Service(instance).flask("db", "backup", str(self.file))
        self._reopen()

    def _reopen(self) -> None:
        applications.with_settings(databases.settings_of(self.instance))

    def restore(self) -> str:
        """Replace the instance's database by the backup; return the command's output."""
        databases.disconnect()
        if postgres.IN_USE:
            databases._place(self.instance, self.name)
            said = Service(self.instance).flask("db", "mark-restored").stdout
        else:
            said = Service(self.instance).flask("db", "restore", str(self.file), "--yes").stdout
        self._reopen()
        return str(said)
