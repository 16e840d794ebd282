"""Jobs take turns, and the first round is not counted."""

import pytest

from papers import timing
from papers.timing import interleave


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch):
    monkeypatch.setattr(timing, "SETTLE", 0.0)


def test_jobs_take_turns_and_the_first_round_is_not_counted():
    ran, counted = [], []
    jobs = {name: (lambda name=name: ran.append(name)) for name in "ab"}
    interleave(jobs, 2, of=lambda seconds: counted.append(len(seconds)) or 0.0)
    assert ran == ["a", "b"] * 3
    assert counted == [2, 2]


def test_prepared_jobs_are_made_anew_each_time():
    made, ran = [], []

    def prepare():
        made.append(object())
        return lambda job=made[-1]: ran.append(job)

    assert interleave({"job": prepare}, 2, prepared=True)["job"] >= 0
    assert ran == made
    assert len(made) == 3
