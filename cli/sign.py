"""`tillbook sign`: explain the signature of a request, line by line."""

from __future__ import annotations

import sys
from typing import Any

import click

from cli.output import Command, facts, json_option, picked, said, show, table
from runtime.state import current
from services.errors import N_, OperatorError
from services.merchants import epay_accounts, merchant_setup
from services.sandbox.signature_help import epay, merchant_api
from services.sandbox.signature_help.explanation import WHY_LEFT_OUT, Explanation, Keys, name_of, visible
from services.sandbox.signature_help.merchant_api import ENDPOINTS

FILE = click.File("rb")


def _decoded(file: Any) -> str:
    try:
        return file.read().decode()
    except UnicodeDecodeError as error:
        raise OperatorError(N_("%(file)s is not UTF-8: %(error)s"), file=file.name, error=str(error)) from None


def _view(told: Explanation) -> dict[str, Any]:
    return {
        "endpoint": told.endpoint,
        "refused": told.refused,
        "verdict": told.verdict.text,
        "holds": told.holds,
        "mistakes": [picked(mistake, "name", "what", "cure") for mistake in told.mistakes],
        "string_to_sign": told.text,
        "lines": [
            {"line": number, "text": text, "from": leaf.place if leaf else N_("address")}
            for number, (text, leaf) in enumerate(told.lines, 1)
        ],
        "left_out": [{"path": leaf.path, "from": leaf.place, "why": leaf.left_out} for leaf in told.left_out],
        "signature": told.signature,
        "their_signature": told.given,
        "their_text": told.their_text,
        "first_difference": vars(told.first) if told.first else None,
        "checks": [{"good": check.good, "text": check.text} for check in told.checks],
    }


def _tell(view: dict[str, Any]) -> None:
    click.echo(said(view["verdict"]))
    if view["refused"]:
        click.echo(f"  {said(view['refused'])}")
        return
    for mistake in view["mistakes"]:
        text = N_("%(mistake)s. %(cure)s")
        click.echo(f"  - {said(text, mistake=said(mistake['what']), cure=said(mistake['cure']))}")
    for check in view["checks"]:
        text = N_("ok: %(check)s") if check["good"] else N_("also: %(check)s")
        click.echo(said(text, check=said(check["text"])))
    click.echo("\n" + said(N_("the server’s string to sign")))
    table([line | {"text": visible(line["text"]), "from": said(line["from"])} for line in view["lines"]])
    if view["left_out"]:
        click.echo("\n" + said(N_("excluded")))
        table(
            [leaf | {"from": said(leaf["from"]), "why": said(WHY_LEFT_OUT[leaf["why"]])} for leaf in view["left_out"]]
        )
    server, client = said(N_("server")), said(N_("theirs"))
    if first := view["first_difference"]:
        text = N_("first difference, line %(line)s, column %(column)s: server %(ours)s, theirs %(theirs)s")
        at = {name: first[name] for name in ("line", "column")}
        click.echo(f"\n{said(text, ours=name_of(first['ours'], said), theirs=name_of(first['theirs'], said), **at)}")
        facts({server: visible(first["our_line"]), client: visible(first["their_line"])})
    signatures = {name: view[name] for name in ("signature", "their_signature") if view[name]}
    if signatures:
        click.echo()
        facts(signatures)


@click.command("sign", cls=Command)
@click.argument("endpoint")
@click.option(
    "--body", type=FILE, help="File with the request body (epay: or its address) as sent, or - for standard input."
)
@click.option("--query", default="", help="Query string as sent, such as 'category=gateway_b'.")
@click.option("--merchant", help="Check with this merchant's stored secrets. They are not shown.")
@click.option("--secret-file", type=FILE, help="Check with the secret in this file, and show the correct signature.")
@click.option("--theirs", type=FILE, help="File with the text that the client signs, to compare it with the server's.")
@click.option("--signature", help="Signature to check. Default: the signature in the request.")
@json_option
def sign(
    endpoint: str,
    body: Any,
    query: str,
    merchant: str | None,
    secret_file: Any,
    theirs: Any,
    signature: str | None,
    as_json: bool,
) -> None:
    """Explain the signature of a request to ENDPOINT.

    ENDPOINT is a name such as createOrder, or the path of its address. `epay` explains a request that a shop's plug-in
    sent, or the address of a notice that the service sent to it. Exits with status 1 if the text or the signature is
    wrong.
    """
    if merchant and secret_file:
        raise click.UsageError(said(N_("Specify either --merchant or --secret-file.")))
    name = endpoint.rsplit("/", 1)[-1]
    if name not in (*ENDPOINTS, epay.NAME):
        text = N_("ENDPOINT must be one of %(names)s.")
        raise click.UsageError(said(text, names=", ".join((*ENDPOINTS, epay.NAME))))
    given: dict[str, Any] = {
        "theirs": _decoded(theirs) if theirs else None,
        "signature": signature and signature.encode(errors="replace").decode(),
    }
    secret = _decoded(secret_file).strip() if secret_file else ""
    if secret_file and not secret:
        raise OperatorError(N_("the secret file is empty"))
    of_merchant = merchant_setup.find_merchant(merchant) if merchant else None
    if name == epay.NAME:  # a file may have the address of the request instead of its form body
        account = epay_accounts.find(of_merchant) if of_merchant else None
        sent = _decoded(body) if body else query
        told = epay.explain(sent, (lambda pid: account) if account else None, secret, **given)
    else:
        told = merchant_api.explain(
            endpoint if endpoint.startswith("/") else f"{current().settings.api_prefix}/merchant/{name}",
            body.read() if body else b"",
            query.removeprefix("?"),
            merchant_api.keys_of(of_merchant) if of_merchant else Keys(valid=(secret,) if secret else ()),
            **given,
        )
    show(_view(told), as_json, _tell)
    sys.exit(0 if told.is_right else 1)
