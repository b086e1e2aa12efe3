#!/usr/bin/env bash
# Install, upgrade or remove Tillbook on a server with Debian or Ubuntu (docs/guides/install.md).
# It looks first, shows what it will do, and asks. Each step can be repeated, so the same command continues after a failure.
set -euo pipefail
umask 022
export DEBIAN_FRONTEND=noninteractive PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

source=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
program=/opt/tillbook      # old and new: the previous program, and the next one until it is complete
new=$program.new
old=$program.old
data=/var/lib/tillbook
backups=/var/backups/tillbook
unit=/etc/systemd/system/tillbook.service
site=/etc/nginx/conf.d/tillbook.conf
commands=(/usr/local/bin/tillbook /usr/local/bin/orders)
python=${PYTHON:-python3}

usage() {
    cat <<'TEXT'
usage: sudo deploy/install.sh DOMAIN [options]        install or upgrade Tillbook for https://DOMAIN
       sudo deploy/install.sh --uninstall [options]   remove it; data, key and backups stay

  --certificate FILE      use this certificate, with its intermediate certificates, instead of Let's Encrypt
  --certificate-key FILE  its private key
  --dry-run               show what would be done, and stop
  --yes                   do not ask
  --delete-data           with --uninstall: delete data, key, backups and user too
TEXT
}

die() {
    printf '%s\n' "error: $1" "${@:2}" >&2
    exit 1
}

wrong_usage() {
    printf 'error: %s\n\n' "$1" >&2
    usage >&2
    exit 2
}

# ---- The options.

domain='' certificate='' certificate_key='' yes='' dry_run='' uninstall='' delete_data=''
while [ $# -gt 0 ]; do
    case $1 in
    --certificate | --certificate-key)
        [ $# -gt 1 ] || wrong_usage "$1 needs a file"
        if [ "$1" = --certificate ]; then certificate=$2; else certificate_key=$2; fi
        shift
        ;;
    --yes) yes=1 ;;
    --dry-run) dry_run=1 ;;
    --uninstall) uninstall=1 ;;
    --delete-data) delete_data=1 ;;
    --help | -h) usage; exit ;;
    -*) wrong_usage "unknown option $1" ;;
    *) [ -z "$domain" ] || wrong_usage "more than one domain: $domain, $1"; domain=${1,,} ;;
    esac
    shift
done
[ -n "$domain$uninstall" ] || wrong_usage "which domain? For example: sudo deploy/install.sh pay.example.com"
label='[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?'
[[ -n $uninstall || ${#domain} -le 253 && $domain =~ ^($label\.)+$label$ && ! $domain =~ ^[0-9.]+$ ]] ||
    wrong_usage "$domain is not a domain name such as pay.example.com"
[ -z "$delete_data" ] || [ -n "$uninstall" ] || wrong_usage "--delete-data needs --uninstall"
[ -n "$certificate" ] && [ -n "$certificate_key" ] || [ -z "$certificate$certificate_key" ] ||
    wrong_usage "--certificate and --certificate-key need each other"
for file in "$certificate" "$certificate_key"; do
    [ -z "$file" ] || [ -r "$file" ] || die "$file cannot be read"
    [[ $file =~ ^[A-Za-z0-9/._+@-]*$ ]] || die "$file: nginx needs a path of letters, digits and / . _ + @ - only"
done
certificate=${certificate:+$(readlink -f "$certificate")}
certificate_key=${certificate_key:+$(readlink -f "$certificate_key")}
[ "$(id -u)" = 0 ] || die "only root can install: run it with sudo"

# ---- What is on this machine.

setting() { # NAME DEFAULT: a setting in config.toml
    local value=''
    [ ! -e "$data/config.toml" ] ||
        value=$(sed -nE "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*[\"']?([^\"'#]*[^\"'#[:space:]]).*/\1/p" "$data/config.toml")
    echo "${value:-$2}"
}

version_in() { # FOLDER: the version there; nothing if there is none. It was in settings.py until 0.4.0
    sed -n 's/^VERSION = "\(.*\)"/\1/p' "$1/runtime/settings.py" "$1/settings.py" 2>/dev/null || true
}

is_open() { # HOST PORT: whether something listens there
    (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null
}

# Without systemd, as in a container or a chroot, everything else is done. Service and nginx are started manually.
manual=''
if [ ! -d /run/systemd/system ]; then
    manual=1
    systemctl() {
        case $* in
        is-active*nginx) [ -s /run/nginx.pid ] && kill -0 "$(cat /run/nginx.pid)" 2>/dev/null ;;
        *reload*nginx) ! systemctl is-active nginx || nginx -s reload ;;
        is-active*tillbook) # it locks its data
            [ -e $data/service.lock ] && ! flock --nonblock $data/service.lock true && { [ "$2" = --quiet ] || echo active; } ;;
        stop*tillbook | disable*tillbook)
            ! systemctl is-active --quiet tillbook ||
                die "the service is running as process $(cat $data/service.lock): stop it first" ;;
        esac
    }
fi

as_service() {
    (cd / && exec setpriv --reuid tillbook --regid tillbook --init-groups -- \
        env HOME=$data ORDERS_INSTANCE=$data "$@")
}

say_plan() { # HEADING, then the steps
    echo "$1"
    shift
    printf '%s\n' "$@" | nl -w 3 -s '. '
    echo
}

confirm() { # QUESTION ANSWER: the answer may be a pattern
    local answered=''
    [ -z "$dry_run" ] || exit 0
    [ -z "$yes" ] || return 0
    [ -t 0 ] || die "there is no terminal to ask on: add --yes to continue without a question"
    read -r -p "$1 " answered || true
    [[ ${answered,,} =~ ^($2)$ ]] || die "stopped, nothing was changed"
}

# ---- Remove it.

if [ -n "$uninstall" ]; then
    domain=$(setting site_url "https://tillbook") domain=${domain#*://}
    plan=(
        "Stop the service and remove $unit."
        "Remove the nginx site $site."
        "Remove the program ($program, and its previous version $old) and the commands ${commands[*]}."
    )
    if [ -n "$delete_data" ]; then
        plan+=("DELETE the database, the key and config.toml ($data), all backups ($backups), and the user tillbook.")
        say_plan "Uninstall Tillbook ($domain)" "${plan[@]}"
        echo "The packages and the certificates stay."
        confirm "This cannot be undone. Type $domain to continue:" "$domain"
    else
        say_plan "Uninstall Tillbook ($domain)" "${plan[@]}"
        echo "The data and the key ($data), the backups ($backups), the user tillbook, packages and certificates stay."
        confirm "Continue? [y/N]" "y|yes"
    fi
    [ ! -e "$unit" ] || systemctl disable --quiet --now tillbook
    rm -rf "$unit" "$unit.d"
    systemctl daemon-reload
    if [ -e "$site" ]; then
        rm "$site"
        systemctl try-reload-or-restart nginx || echo "Note: nginx could not reload its configuration: see nginx -t"
    fi
    rm -rf "$program" "$new" "$old" "${commands[@]}"
    if [ -n "$delete_data" ]; then
        rm -rf "$data" "$backups"
        ! id tillbook >/dev/null 2>&1 || userdel tillbook
    fi
    echo "Tillbook was removed."
    exit
fi

# ---- Check everything that could stop the installation, before anything is changed.

python_is_new_enough() { "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; }

command -v apt-get >/dev/null || die "this script is for Debian and Ubuntu: for another system, see docs/guides/install.md"
! command -v "$python" >/dev/null || python_is_new_enough ||
    die "Python 3.11 or newer is needed (Debian 12, Ubuntu 24.04); this is $("$python" -V)." \
        "If another Python is installed, name it: sudo PYTHON=/usr/bin/python3.12 deploy/install.sh $domain"
for path in /srv/orders/service /etc/systemd/system/orders.service; do
    [ ! -e "$path" ] || die "$path belongs to an installation of version 0.4.0 or older." \
        "First follow docs/guides/upgrade.md, section \"Move an installation of 0.4.0\""
done
for path in "${commands[@]}"; do
    [ ! -e "$path" ] || grep -q /opt/tillbook "$path" || die "$path is another program's command: move it away first"
done

if [ -n "$certificate" ] && command -v openssl >/dev/null; then
    [ "$(openssl x509 -in "$certificate" -noout -pubkey)" = "$(openssl pkey -in "$certificate_key" -pubout)" ] ||
        die "$certificate_key is not the private key of $certificate"
    [[ $(openssl x509 -in "$certificate" -noout -checkhost "$domain") == *"does match"* ]] ||
        die "$certificate is not for $domain"
fi

host=$(setting host 127.0.0.1) port=$(setting port 8000) site_url=$(setting site_url "https://$domain")
database_url=$(setting database_url "")
state=$(systemctl is-active tillbook || true)    # "activating" also between two failing starts
[ "$state" = active ] || ! is_open "$host" "$port" ||
    die "another program uses port $port of $host. To see which: ss -ltnp 'sport = :$port'"
for public in 80 443; do
    systemctl is-active --quiet nginx || ! is_open 127.0.0.1 $public ||
        die "another program than nginx uses port $public. To see which: ss -ltnp 'sport = :$public'"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The program is the checkout without hidden files, data, tests and what is made from other files. The checksum of this
# archive, which contains no times and no owners, decides whether the program on the server is the same.
tar --create --file "$work/program.tar" --directory "$source" \
    --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --anchored \
    --exclude='./.*' --exclude=./instance --exclude=./tests --exclude=./bench --exclude=./dist --exclude=./build \
    --exclude='./seed.sqlite*' --exclude=./deploy/docker/.env \
    --no-anchored --exclude=__pycache__ --exclude=node_modules --exclude='*.mo' .
checksum=$(sha256sum <"$work/program.tar")
version=$(version_in "$source")
installed=$(version_in $program)
same=''
[ "$(cat $program/.installed 2>/dev/null)" != "$checksum" ] || same=1
[ -z "$installed" ] || ! dpkg --compare-versions "$version" lt "$installed" ||
    die "$installed is installed, and this is $version. To return to an earlier version, see docs/guides/upgrade.md"

packages=()
for each in make nginx curl sudo; do
    command -v "$each" >/dev/null || packages+=("$each")
done
"$python" -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)

# The certificate: the given one, the one of the present site, or Let's Encrypt's.
in_site() { # DIRECTIVE
    [ ! -e "$site" ] || sed -nE "s/^ *$1 +([^; ]+);.*/\1/p" "$site" | head -n 1
}
if [ -z "$certificate" ] && [ "$(in_site server_name)" = "$domain" ] && [ -e "$(in_site ssl_certificate)" ]; then
    certificate=$(in_site ssl_certificate) certificate_key=$(in_site ssl_certificate_key)
fi
from_lets_encrypt=''
if [ -z "$certificate" ]; then
    certificate=/etc/letsencrypt/live/$domain/fullchain.pem
    certificate_key=/etc/letsencrypt/live/$domain/privkey.pem
    if [ ! -e "$certificate" ]; then
        from_lets_encrypt=1
        command -v certbot >/dev/null || packages+=(certbot)
    fi
fi

# ---- Show the plan, and ask.

plan=()
[ ${#packages[@]} = 0 ] || plan+=("Install the packages ${packages[*]} with apt-get.")
id tillbook >/dev/null 2>&1 || plan+=("Create the user tillbook.")
if [ -d $data ]; then plan+=("Keep the data in $data."); else plan+=("Create $data for the data, and $backups for backups."); fi
[ -e $data/config.toml ] || plan+=("Write the settings, $data/config.toml.")
backup=''
if [ -n "$same" ]; then
    [ "$state" = active ] || plan+=("Migrate the database if necessary, and start the service.")
else
    plan+=("Prepare the program in $new and download its Python packages (about a minute).")
    if [ -n "$database_url" ]; then
        plan+=("Stop the service on this machine. The database is on Postgres: make a backup with pg_dump, and stop the services on all other machines, before you continue.")
    elif [ -e $data/orders.sqlite ]; then
        backup=$backups/before-$version-$(date -u +%Y%m%dT%H%M%SZ).sqlite
        plan+=("Stop the service, and back up the database to $backup.")
    fi
    if [ -n "$installed" ]; then plan+=("Replace the program in $program, and keep the previous one in $old.")
    else plan+=("Move the program to $program."); fi
    plan+=("Install ${commands[*]}, and $unit." "Migrate the database, and start the service.")
fi
plan+=("Check the health of the service, http://$host:$port/healthz." "Publish https://$domain by the nginx site $site.")
[ -z "$from_lets_encrypt" ] ||
    plan+=("Get a certificate for $domain from Let's Encrypt with certbot. This accepts Let's Encrypt's terms of service.")

if [ -n "$same" ]; then heading="Tillbook $version is installed. Check and repair the installation for $domain:"
elif [ "$installed" = "$version" ]; then heading="Replace Tillbook $version by other files of the same version for $domain:"
elif [ -n "$installed" ]; then heading="Upgrade Tillbook from $installed to $version for $domain:"
else heading="Install Tillbook $version for $domain:"; fi
say_plan "$heading" "${plan[@]}"
[ -z "$manual" ] || echo "Note: systemd is not running here, so neither the service nor nginx will be started."
[ "$site_url" = "https://$domain" ] ||
    echo "Note: site_url in $data/config.toml is $site_url. It stays: if https://$domain is right, change it and restart."
confirm "Continue? [y/N]" "y|yes"

# ---- Do it. `step` names the running step for the message of a failure.

step='' stopped='' swapped=''

begin() {
    step=$1
    echo "==> $step"
}

quietly() { # Show the output of a command only if it fails. It is in a subshell so that a trap writes to the terminal.
    (export TMPDIR="$work" && "$@") >"$work/output" 2>&1 </dev/null || { tail -n 20 "$work/output" >&2; return 1; }
}

ended() {
    local status=$?
    trap - EXIT
    trap '' HUP INT TERM
    if [ $status != 0 ] && [ -n "$step" ]; then
        echo "error: this step failed or was interrupted: $step" >&2
        if [ -n "$stopped" ] && [ -z "$swapped" ]; then
            [ -e $program ] || mv $old $program
            systemctl start tillbook && echo "Nothing was changed. Version $installed is running again." >&2
        elif [ -e $old ] && [ -e $program ] && [ ! -e $program/.worked ]; then
            say_way_back >&2
        elif [ "$state" = active ] && [ -z "$same" ]; then
            echo "Version $installed keeps running." >&2
        fi
        echo "When the cause is removed, run the same command again: it continues." >&2
    fi
    rm -rf "$work" $new
    exit $status
}

say_way_back() {
    local previous restore
    previous=$(version_in $old)
    backup=$(cat $old/.backup)
    restore="# restore your backup of Postgres: docs/scaling.md"
    if [ -n "$backup" ]; then
        restore="tillbook db restore --yes $backup"
        [ -e $program/.started ] || restore+=" && tillbook db resume"
    fi
    cat <<TEXT

Version $(version_in $program) is in $program, and the service may not be running. Version $previous is in $old.
${backup:+The database before the upgrade is in $backup
}To return to version $previous, run as root:

  systemctl stop tillbook
  rm -rf $program && mv $old $program
  cp $program/deploy/systemd/tillbook.service $unit && systemctl daemon-reload
  $restore
  systemctl start tillbook

TEXT
    [ ! -e $program/.started ] || echo "A restore loses orders that the new version may have recorded since the backup:" \
        "follow docs/guides/backup.md, section \"After a restore\", to the end."
}

trap ended EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

if [ ${#packages[@]} != 0 ]; then
    begin "Install the packages ${packages[*]}"
    quietly apt-get update
    quietly apt-get install -y --no-install-recommends "${packages[@]}"
    python_is_new_enough || die "Python 3.11 or newer is needed: Debian 12, Ubuntu 24.04, or newer"
fi

begin "Create the user, the folders and the settings"
id tillbook >/dev/null 2>&1 ||
    useradd --system --user-group --home-dir $data --no-create-home --shell /usr/sbin/nologin tillbook
install -d -o tillbook -g tillbook -m 700 $data $backups
chown --recursive --no-dereference tillbook:tillbook $data $backups
[ -e $data/config.toml ] || install -o tillbook -g tillbook -m 600 /dev/stdin $data/config.toml <<TEXT
site_url = "https://$domain"
trusted_proxies = 1
buy_expiry = 86400
TEXT

if [ -z "$same" ]; then
    begin "Prepare the program in $new (about a minute)"
    rm -rf $new
    mkdir $new
    tar --extract --file "$work/program.tar" --directory $new --touch --no-same-owner
    quietly make -C $new install
    [ -z "$database_url" ] || quietly make -C $new postgres
    # Everything is compiled now, because the service cannot write here. The scripts name the folder's final path.
    $new/.venv/bin/python -m compileall -q -x '/\.venv/' $new
    grep -rlIF $new/ $new/.venv/bin $new/.venv/pyvenv.cfg | xargs sed -i "s|$new/|$program/|g"
    echo "$checksum" >$new/.installed

    # Also if it is just starting: it could record orders after the backup, and go on with the replaced program.
    if [ -e $unit ]; then
        begin "Stop the service"
        [[ $state != activ* ]] || stopped=1
        systemctl stop tillbook
    fi
    if [ -n "$backup" ]; then
        begin "Back up the database to $backup"
        quietly as_service $new/.venv/bin/tillbook db backup --empty "$backup"
    fi

    begin "Put the program into $program"
    if [ -e $program ] && [ -e $old ] && [ ! -e $program/.worked ]; then
        # It never worked, so the one before it remains the way back.
        [ ! -e $program/.started ] || touch $new/.started
        rm -rf $program
    elif [ -e $program ]; then
        rm -rf $old
        echo "$backup" >$program/.backup
        mv $program $old
    fi
    mv $new $program
    swapped=1
fi

begin "Install the unit and the commands"
install -m 644 $program/deploy/systemd/tillbook.service $unit
install -m 755 $program/deploy/tillbook.sh "${commands[0]}"
ln -sfn "${commands[0]##*/}" "${commands[1]}"
systemctl daemon-reload
systemctl enable --quiet tillbook

if ! systemctl is-active --quiet tillbook; then
    begin "Migrate the database"
    systemctl stop tillbook    # it may be between two failing starts
    as_service $program/.venv/bin/tillbook db migrate
    touch $program/.started
fi
begin "Start the service and check its health, http://$host:$port/healthz"
if [ -z "$manual" ] && { ! systemctl start tillbook 2>/dev/null ||
    ! curl --noproxy '*' --silent --fail --output /dev/null --max-time 5 \
        --retry 30 --retry-delay 1 --retry-all-errors "http://$host:$port/healthz"; }; then
    journalctl --unit tillbook --lines 20 --no-pager >&2 || true
    die "the service is not healthy. Its log: journalctl -u tillbook"
fi
touch $program/.worked

# The site of nginx. Until there is a certificate, only its first server, which has port 80.
rendered() { # FOLDER DOMAIN CERTIFICATE KEY
    sed -E -e "s/pay\.example\.com/$2/g" -e "s|^( *ssl_certificate +).*;|\1$3;|" \
        -e "s|^( *ssl_certificate_key +).*;|\1$4;|" "$1/deploy/nginx/tillbook.conf"
}

publish() {
    local present='' wanted folder
    # A site with HTTPS, such as that of the previous domain, stays until the new certificate is there.
    [ -e "$certificate" ] || [ ! -e "$(in_site ssl_certificate)" ] || return 0
    [ ! -e $site ] || present=$(cat $site)
    wanted=$(rendered $program "$domain" "$certificate" "$certificate_key")
    [ -e "$certificate" ] || wanted=$(awk '/^server \{/ && ++servers == 2 { exit } { print }' <<<"$wanted")
    if [ "$present" != "$wanted" ] && [[ $present == *"listen 443"* ]]; then
        # Replace the site only if it is as a version of the program has it.
        for folder in $program $old ''; do
            [ -n "$folder" ] || { echo "Note: $site was changed on this machine, so it stays as it is."; return 0; }
            [ -e "$folder/deploy/nginx/tillbook.conf" ] || continue
            [ "$present" != "$(rendered "$folder" "$(in_site server_name)" "$(in_site ssl_certificate)" "$(in_site ssl_certificate_key)")" ] || break
        done
    fi
    echo "$wanted" >$site
    if ! nginx -t 2>"$work/output"; then
        cat "$work/output" >&2
        if [ -n "$present" ]; then echo "$present" >$site; else rm $site; fi
        die "nginx refuses the site, so it was not installed"
    fi
    systemctl enable --quiet nginx
    systemctl reload-or-restart nginx
}

begin "Publish https://$domain by the nginx site $site"
mkdir -p /var/www/html
publish
if [ -n "$from_lets_encrypt" ] && systemctl is-active --quiet nginx; then
    begin "Get a certificate from Let's Encrypt"
    certbot certonly --non-interactive --agree-tos --register-unsafely-without-email --webroot \
        --webroot-path /var/www/html --cert-name "$domain" --domain "$domain" \
        --deploy-hook "systemctl reload nginx" || true
    publish
fi
step=''

# ---- What is left for the operator.

echo
if [ -z "$manual" ]; then
    echo "Tillbook $version is running. Its commands: sudo tillbook --help. Its log: journalctl -u tillbook"
else
    echo "Tillbook $version is installed. Now start nginx, and the service: sudo tillbook serve"
fi
echo "Copy the key to a safe place, other than that of the backups: $data/vault.key"

if [ "$(as_service $program/.venv/bin/tillbook operator list --json)" = "[]" ]; then
    name=''
    if [ -t 0 ] && [ -z "$yes" ]; then
        read -r -p "Name for your console account: " name || true
        [ -z "$name" ] || "${commands[0]}" operator add "$name" || name=''
    fi
    [ -n "$name" ] || echo "Add your console account: sudo tillbook operator add NAME"
fi

if [ ! -e "$certificate" ]; then
    echo
    echo "One thing is missing: the certificate for $domain. Then run the same command again: it continues."
    echo "  $domain must point to this machine, and port 80 must be open for everyone, also in the cloud's firewall."
    echo "  Or name a certificate that you have: --certificate FILE --certificate-key FILE"
    exit 1
fi
[ -n "$manual" ] || curl --noproxy '*' --silent --show-error --output /dev/null --max-time 10 --retry 5 --retry-connrefused \
    --resolve "$domain:443:127.0.0.1" "https://$domain/openapi.json" ||
    echo "Note: browsers will refuse https://$domain for this reason. Check the certificate $certificate"
echo "Open https://$domain/console. If it does not open from elsewhere, allow ports 80 and 443 in the cloud's firewall."
