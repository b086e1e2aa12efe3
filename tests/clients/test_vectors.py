"""Every published client signs the vectors that it can express as published."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from services.security.signing import sign_webhook
from tests.clients.languages import LANGUAGES, PUBLISHED, VECTORS, as_java, as_json, primitive
from tests.support import ROOT

PAGE = (ROOT / "docs" / "signing.md").read_text("utf-8")
JQ = Path(__file__).parent / "harness" / "vectors.jq"


@pytest.mark.parametrize("language", LANGUAGES)
def test_its_signatures_are_the_published_ones(language, client):
    done = client.run(
        client.language.vectors, given=as_json(client.vectors).encode(), MERCHANT_SECRET=PUBLISHED["secret"]
    )
    assert done.returncode == 0, done.stderr.decode()
    said = done.stdout.decode().split("\0")[:-1]
    assert list(zip(said[::2], said[1::2], strict=True)) == [
        (vector["string_to_sign"], vector["signature"]) for vector in client.vectors
    ]


@pytest.mark.parametrize("name", VECTORS)
def test_every_vector_is_used_for_some_client(name):
    assert any(name not in language.cannot_express for language in LANGUAGES.values())


def differences(texts):
    """Return the vectors that a language signs differently, by name: its text of the number."""
    found = {}
    for vector, text in zip(VECTORS.values(), texts, strict=True):
        if text != vector["string_to_sign"]:
            lines = [line for line in text.split("\n") if line not in vector["string_to_sign"].split("\n")]
            found[vector["name"]] = [line.partition("=")[2] for line in lines]
    return found


def on_the_page(language):
    """The same from the table of the page."""
    head, *rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*$", PAGE, re.MULTILINE)
    ]
    while "JavaScript" not in head:
        head, *rows = rows
    cells = {row[0]: row[head.index(language)] for row in rows if row[0] in VECTORS}
    return {name: [cell] for name, cell in cells.items() if cell != "passes"}


@pytest.mark.parametrize(("name", "language"), [("Python", "Python"), ("PHP", "PHP"), ("Node", "JavaScript")])
def test_the_page_says_which_vectors_a_parser_of_json_cannot_pass(name, language, clients_by_name):
    client = clients_by_name(name)
    done = client.run(client.language.vectors, given=as_json(VECTORS.values()).encode())
    assert done.returncode == 0, done.stderr.decode()
    found = differences(done.stdout.decode().split("\0")[:-1:2])
    assert found == on_the_page(language)
    assert {*found} == {*client.language.cannot_express}


def test_the_page_says_which_vectors_the_numbers_of_java_cannot_pass(clients_by_name):
    client = clients_by_name("Java")
    source = (Path(__file__).parent / "harness" / "Vectors.java").read_text("utf-8").replace("Vectors", "Numbers")
    statements = as_java(VECTORS.values(), primitive)
    (client.folder / "Numbers.java").write_text(source.replace("// VECTORS", statements), "utf-8")
    assert client.run("javac Numbers.java").returncode == 0
    done = client.run("java Numbers")
    assert done.returncode == 0, done.stderr.decode()
    assert differences(done.stdout.decode().split("\0")[:-1:2]) == on_the_page("Java")


@pytest.mark.usefixtures("slow")
@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
def test_the_page_says_which_vectors_jq_cannot_pass():
    command = ["jq", "--raw-output", "--join-output", "--from-file", JQ]
    done = subprocess.run(command, input=as_json(VECTORS.values()).encode(), capture_output=True, check=True)
    found = differences(done.stdout.decode().split("\0")[:-1])
    version = subprocess.run(["jq", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    of_page = on_the_page("jq 1.6")
    assert found == of_page if version == "jq-1.6" else {*found} <= {*of_page}


@pytest.mark.usefixtures("slow")
@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_the_commands_of_the_page_print_what_it_says():
    commands = re.findall(r"```sh\n([^`]*openssl[^`]*)```\n\nIt prints `([^`]+)`", PAGE)
    assert len(commands) == 3
    for command, printed in commands:
        done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == printed


def test_the_published_callback_is_signed_as_the_service_signs_it():
    callback = PUBLISHED["callback"]
    at = int(callback["webhook-timestamp"])
    signature = sign_webhook([callback["secret"]], callback["webhook-id"], at, callback["body"])
    assert callback["webhook-signature"] == signature
    assert callback["hexkey"] in PAGE
