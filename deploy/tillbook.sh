#!/bin/sh
# The command `tillbook` on a server, also named `orders`: run the program as the service's user on the service's data.
# Root keeps the right to read its files, such as a key in /root: `--config private_key=@key.pem`. It writes as the user.
case $(id -un) in
root) set -- setpriv --reuid tillbook --regid tillbook --init-groups --securebits +no_setuid_fixup \
    --inh-caps +dac_read_search --ambient-caps +dac_read_search -- /opt/tillbook/.venv/bin/tillbook "$@" ;;
tillbook) set -- /opt/tillbook/.venv/bin/tillbook "$@" ;;
*) echo "error: only root can act as the service. Run: sudo tillbook $*" >&2; exit 1 ;;
esac
exec env HOME=/var/lib/tillbook ORDERS_INSTANCE="${ORDERS_INSTANCE:-/var/lib/tillbook}" "$@"
