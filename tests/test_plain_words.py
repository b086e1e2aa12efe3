"""The check of wording finds the phrases of its list, and only those."""

from tests.plain_words import hits, read

phrases, allowed = read("# comment\n\nby hand => manually\nis told => is notified\nallow docs/a.md: by hand\n")


def found(text):
    return [*hits(text, phrases)]


def test_the_list_has_phrases_and_exceptions():
    assert phrases == {"by hand": "manually", "is told": "is notified"}
    assert allowed == {("docs/a.md", "by hand")}


def test_a_phrase_is_found_with_its_line_in_either_case():
    assert found("one\nDone By hand.\n") == [(2, "by hand")]


def test_a_phrase_is_found_across_lines_comment_signs_and_quotes():
    assert found("# done by\n# hand") == [(1, "by hand")]
    assert found("'the merchant is '\n'told'") == [(1, "is told")]


def test_whole_words_only():
    assert found("by handler, nearby hand, by-hand") == []
