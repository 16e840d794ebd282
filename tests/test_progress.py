"""The progress line: after some time, on standard error, and never in the way of an error."""

import pytest

from traceless.progress import progress


def test_the_line_shows_how_far_it_is(capsys):
    assert list(progress(range(4), "learning", True, 0.0)) == [0, 1, 2, 3]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "learning [" in shown.err
    assert " 50%" in shown.err
    assert "100%" in shown.err.splitlines()[-1]


@pytest.mark.parametrize(("verbose", "after"), [(False, 0.0), (True, 60.0)])
def test_there_is_no_line_unless_it_is_wanted_and_takes_long(capsys, verbose, after):
    assert list(progress([1, 2], "learning", verbose, after)) == [1, 2]
    assert capsys.readouterr() == ("", "")


def test_batches_of_a_table_have_no_known_end(capsys):
    batches = [([1, 2, 3], "y"), ([4], "z")]
    read = progress(iter(batches), "reading", True, 0.0, size=lambda b: len(b[0]))
    assert list(read) == batches
    assert "3 rows, " in capsys.readouterr().err


def test_an_item_counts_when_it_is_done(capsys):
    for _ in progress(range(3), "reading", True, 0.0):
        assert "100%" not in capsys.readouterr().err  # the last one is read, and not yet done
    assert "100%" in capsys.readouterr().err


def test_an_error_begins_on_a_line_of_its_own(capsys):
    def items():
        yield from (1, 2)
        raise ValueError("the line was cut")

    with pytest.raises(ValueError, match="cut"):
        list(progress(items(), "reading", True, 0.0, size=lambda _: 1))
    assert capsys.readouterr().err.endswith("\n")
