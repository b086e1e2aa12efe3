"""The mark of a text for translation."""

N_ = str
