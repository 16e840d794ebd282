import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless import LSSVC, LSSVR, Knowledge
from traceless.exceptions import AlreadyMergedError
from traceless.features import Linear
from traceless.knowledge.provenance import Provenance, Slice


def site(k, rows=4):
    X = np.arange(rows * 2.0).reshape(rows, 2) % 7 + k / 8
    return LSSVC().fit(X, np.arange(rows) % 2)


def refused(merge, said):
    with pytest.raises(AlreadyMergedError, match=said):
        merge()


@pytest.mark.parametrize("solver", ["cholesky", "woodbury"])
@pytest.mark.parametrize("name", [None, "march"])
def test_a_slice_that_two_models_have_is_not_counted_twice(solver, name):
    s = site(0).knowledge_
    a, b = (LSSVC(solver=solver).merge(site(k)).merge(s, name=name) for k in (1, 2))
    before = a.digest(), a.n_samples_, a.merged_
    refused(lambda: a.merge(b), f"itself merged the slice '{name or s.digest()}'")
    assert (a.digest(), a.n_samples_, a.merged_) == before
    a.merge(b, again=True)
    assert a.merged_[name or s.digest()] == 2
    assert a.n_samples_ == 16


def test_it_travels_through_models_copies_and_pickles():
    s = site(0)
    inner = LSSVC().merge(site(1)).merge(s)
    middle = LSSVC().merge(inner, name="middle")
    for outer in (LSSVC().merge(middle), LSSVC().merge(pickle.loads(pickle.dumps(middle)))):
        refused(lambda outer=outer: outer.merge(s), "would count twice")
        refused(lambda outer=outer: outer.merge(inner), "would count twice")
        refused(lambda outer=outer: outer.merge(site(4).merge(s)), "itself merged")
        outer.merge(site(3))
        models = middle, inner, site(1), s, site(3)
        assert set(outer.merged_) == {"middle", *(model.digest() for model in models)}
    refused(lambda: copy.copy(middle).merge(s), "would count twice")


def test_what_is_held_as_a_whole_is_known_by_its_digest():
    a = site(0)
    refused(lambda: a.merge(copy.copy(a)), "is all that is held")
    refused(lambda: a.merge(a.knowledge_), "is all that is held")
    b = site(1).merge(a)
    refused(lambda: a.merge(b), "itself merged the slice")
    assert a.merge(a, name="meant").n_samples_ == 8


def test_who_leaves_takes_along_what_it_brought():
    s, t = site(0), site(5)
    b = LSSVC().merge(site(1)).merge(s)
    a = site(2).merge(b).merge(t)
    fresh = site(2).merge(t)
    a.merge(-b.knowledge_)
    assert a.merged_ == fresh.merged_
    assert a.digest() == fresh.digest()
    assert a.merge(s).n_samples_ == 12


def test_a_slice_may_leave_that_came_with_another():
    s = site(0)
    a = site(2).merge(LSSVC().merge(site(1)).merge(s))
    a.merge(-s.knowledge_)
    assert s.digest() not in a.merged_
    assert a.merge(s).merged_[s.digest()] == 1
    refused(lambda: a.merge(s), "merged before")


def test_taking_out_what_was_never_merged_changes_nothing():
    a = site(0).merge(site(1))
    before = a.merged_
    a.merge(-site(0).knowledge_)
    assert a.merged_ == before
    a.merge(site(0))
    assert a.n_samples_ == 8


def test_bare_knowledge_brings_nothing_along():
    """As the documentation says: a sum does not say of what."""
    s = site(0)
    a, b = site(1).merge(s), site(2).merge(s)
    assert a.merge(b.knowledge_).n_samples_ == 16


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 3)), min_size=1, max_size=12
    )
)
def test_what_is_counted_on_is_what_a_count_finds(history):
    """A merge adds to the counts of the one before: they are those of the slices all the same."""
    pieces = {name: site(k).knowledge_ for k, name in enumerate("abc")}
    others = [Provenance(), *(Provenance({n: Slice(k + 1)}) for k, n in enumerate("abd"))]
    held = Provenance()
    for name, leaves, who in history:
        piece = -pieces[name] if leaves else pieces[name]
        held = held.after(None, piece, others[who], name, again=True)
        assert held.counts() == Provenance(held.merged).counts()


def test_regressions_too(rng):
    X, y = rng.normal(size=(9, 2)), rng.normal(size=9)
    s = LSSVR().fit(X[:3], y[:3])
    a, b = LSSVR().fit(X[3:6], y[3:6]).merge(s), LSSVR().fit(X[6:], y[6:]).merge(s)
    refused(lambda: a.merge(b), "itself merged the slice")


class TestValue:
    known = Knowledge.of(Linear(), [[1.0]], ["x"])
    nothing = Provenance()

    def test_it_does_not_change(self):
        one = self.nothing.after(None, self.known, self.nothing, "s", again=False)
        assert self.nothing.counts() == {}
        assert one.counts() == {"s": 1}
        assert one.merged == {"s": Slice(1)}
        assert one == self.nothing.after(None, self.known, self.nothing, "s", again=True)

    def test_counts_of_slices_in_slices(self):
        theirs = Provenance({"s": Slice(2), "t": Slice(1, {"s": 1})})
        assert theirs.counts() == {"s": 3, "t": 1}
        ours = self.nothing.after(None, self.known, theirs, "m", again=False)
        assert ours.counts() == {"m": 1, "s": 3, "t": 1}
        assert ours.after(None, self.known, theirs, "m", again=True).counts()["s"] == 6
        assert ours.after(None, -self.known, self.nothing, "m", again=False) == self.nothing
