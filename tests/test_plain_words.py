"""The check of wording finds the phrases of its list, and only those."""

import pytest

from tests.plain_words import hits, read

phrases, allowed = read("# comment\n\nby hand => manually\nis told => is notified\nallow docs/a.md: by hand\n")


def test_the_list_has_phrases_and_exceptions():
    assert phrases == {"by hand": "manually", "is told": "is notified"}
    assert allowed == {("docs/a.md", "by hand")}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("one\nDone By hand.\n", [(2, "by hand")]),
        ("# done by\n# hand", [(1, "by hand")]),
        ("'the merchant is '\n'told'", [(1, "is told")]),
        ("by handler, nearby hand, by-hand", []),
    ],
    ids=["with its line, in either case", "across comment signs", "across quotes", "whole words only"],
)
def test_a_phrase_is_found(text, found):
    assert [*hits(text, phrases)] == found
