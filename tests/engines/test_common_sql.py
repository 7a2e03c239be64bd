"""What the dialects of all engines share, without an engine."""

from discreet.engines.common_sql import changed_letters


def test_all_letters_that_change_are_found():
    letters = map(chr, range(0x110000))  # surrogates, which no text has, do not change
    assert changed_letters(str.upper) == {letter: letter.upper() for letter in letters if letter.upper() != letter}
