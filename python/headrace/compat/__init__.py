"""Answers in the words of other tools, for programs that were written against them."""
