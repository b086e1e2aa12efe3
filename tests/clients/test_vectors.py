"""Every published client signs what it can express as the published vectors say."""

import pytest

from tests.clients.languages import LANGUAGES, PUBLISHED, VECTORS, as_json


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
def test_some_client_is_held_to_every_vector(name):
    assert any(name not in language.cannot_express for language in LANGUAGES.values())
