#!/bin/sh
# The command `tillbook`. `.venv/bin/tillbook` is a link to this file, so the command works in any folder.
root=$(dirname "$(dirname "$(readlink -f "$0")")")
[ $# -gt 0 ] || set -- --help
exec "$root/.venv/bin/python" "$root/app.py" "$@"
