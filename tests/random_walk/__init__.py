"""The random lives of one service whose money must add up."""
