"""Rows by id: forget, relabel, correct and find for somebody who has a number, and not the row."""

import pytest
from people import table

from traceless import LSSVC, Store
from traceless.sources import Files, Schema

HEADER = "patient,age,pressure,state"


def refit(lines, path):
    """The digest of a fit from scratch on these lines."""
    schema = Schema.from_facts(Store("clinic").about["table"])
    X, y, _ = Files([str(table(path, lines, HEADER))], schema).arrays()
    return LSSVC(schema.table, fingerprint=True).fit(X, y).digest()


def of(lines, *ids):
    return [line for line in lines if line.split(",")[0] in ids]


def without(lines, *ids):
    return [line for line in lines if line.split(",")[0] not in ids]


def digest(call):
    return call("status", "clinic", "--json").json["digest"]


def found(call, one):
    (told,) = call("find", "clinic", f"patient={one}", "--json").json["found"]
    return told


def test_the_rows_of_ids_are_forgotten(call, clinic, tmp_path):
    """Ids come as words or from a file, their rows from several tables."""
    table(tmp_path / "a.csv", clinic[:70], HEADER)
    table(tmp_path / "b.csv", clinic[70:], HEADER)
    (tmp_path / "letters.txt").write_text("\ufeff23\r\n\r\n 18.0 \n23\n")
    (tmp_path / "year=2026").mkdir()
    (tmp_path / "year=2026" / "letters.txt").write_text("23\n")
    (asked,) = call("find", "clinic", "@year=2026/letters.txt", "--json").json["found"]
    assert asked["held"] == len(of(clinic, "23"))
    told = call("forget clinic --from a.csv --from b.csv --where 'patient=17, 19' --json").json
    assert told["ids"] == {one: len(of(clinic, one)) for one in ("17", "19")}
    assert told["receipt"]["rows"] == sum(told["ids"].values())
    shown = call("forget clinic --from all.csv --where patient=@letters.txt").out
    assert f"23       {len(of(clinic, '23'))}" in shown
    assert digest(call) == refit(without(clinic, "17", "18", "19", "23"), tmp_path / "rest.csv")


def test_all_rows_of_an_id_must_be_there(call, clinic, tmp_path):
    before, mine = digest(call), of(clinic, "17")
    short = mine[1:] + without(clinic, "17")
    table(tmp_path / "short.csv", short, HEADER)
    said = call("forget", "clinic", "--from", "short.csv", "--where", "patient=17", code=2).err
    assert f"The store holds {len(mine)} rows of patient 17" in said
    assert f"short.csv has {len(mine) - 1} of that id" in said
    table(tmp_path / "mine.csv", mine[1:], HEADER)
    assert "more rows" in call("forget", "clinic", "mine.csv", "--whole", code=2).err
    assert digest(call) == before
    call("forget", "clinic", "mine.csv")
    assert digest(call) == refit([*without(clinic, "17"), mine[0]], tmp_path / "rest.csv")


def test_rows_of_others_are_not_even_looked_at(call, clinic, tmp_path):
    """A table of everybody may have rows that do not fit; those of the id must."""
    broken = [*clinic, "99,forty,120,well", "98,40,120,"]
    table(tmp_path / "broken.csv", broken, HEADER)
    call("forget", "clinic", "--from", "broken.csv", "--where", "patient=17")
    said = call("forget", "clinic", "--from", "broken.csv", "--where", "patient=99", code=2).err
    assert f"broken.csv, line {len(clinic) + 2}, column 'age': a number is needed" in said


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("patient=17,999", "The store holds no rows of patient 999 (see traceless find)."),
        ("age=17", "rows are found by the column of ids, as in patient=17,23"),
        ("patient=", "names no id"),
        ("patient=@none.txt", "none.txt"),
    ],
)
def test_what_cannot_be_meant_is_refused(call, clinic, where, said):
    before = digest(call)
    assert said in call("forget", "clinic", "--from", "all.csv", "--where", where, code=2).err
    assert digest(call) == before


@pytest.mark.parametrize(
    "words",
    [
        ("all.csv", "--where", "patient=17"),
        ("--from", "all.csv"),
        ("all.csv", "--from", "all.csv", "--where", "patient=17"),
    ],
)
def test_tables_and_files_of_rows_are_told_apart(call, clinic, words):
    """Who leaves out --where must not forget everybody."""
    assert "Nothing was changed" in call("forget", "clinic", *words, code=2).err


def test_ids_that_the_store_does_not_hold(call, clinic, tmp_path):
    forget = ("forget", "clinic", "--from", "all.csv", "--where")
    call(*forget, "patient=17", "--request", "letter 1")
    said = call(*forget, "patient=17", code=2).err
    assert "no rows of patient 17: they were forgotten on 20" in said
    again = call(*forget, "patient=17", "--request", "letter 1", "--json").json
    assert again["receipt"]["replayed"]
    call(*forget, "patient=23", "--batch")
    assert "of patient 23 wait in the queue" in call(*forget, "patient=23", code=2).err
    table(tmp_path / "new.csv", ["700,30,120,well"], HEADER)
    said = call("forget", "clinic", "--from", "new.csv", "--where", "patient=700", code=2).err
    assert "holds no rows of patient 700 (see" in said


def test_rows_that_are_not_held_are_named_by_their_line(call, clinic, tmp_path):
    mine, others = of(clinic, "17"), without(clinic, "17")
    table(tmp_path / "more.csv", [*others, "17,1,1,ill", *mine], HEADER)
    said = call("forget", "clinic", "--from", "more.csv", "--where", "patient=17", code=2).err
    assert f"more.csv, line {len(others) + 2}. They were never learned" in said


def test_correct_by_id(call, clinic, tmp_path):
    new = [f"17,{44 + k},120,well" for k in range(2)]
    table(tmp_path / "new.csv", [*new, *without(clinic, "17"), "1,1,1,ill"], HEADER)
    words = ("correct", "clinic", "--from", "all.csv", "--to", "new.csv", "--where", "patient=17")
    told = call(*words, "--json").json
    assert told["receipt"]["added"] == 2
    assert told["receipt"]["removed"] == len(of(clinic, "17"))
    assert digest(call) == refit([*without(clinic, "17"), *new], tmp_path / "rest.csv")
    assert found(call, 17)["held"] == 2
    assert "more rows" not in call(*words, code=2).err  # the old rows are gone


def test_find_tells_the_history_of_an_id(call, clinic):
    n = len(of(clinic, "17"))
    call("forget", "clinic", "--from", "all.csv", "--where", "patient=17", "--batch")
    told = found(call, "17.0")
    assert (told["id"], told["held"], told["waiting"], told["suppressed"]) == ("17", n, n, None)
    events = [(e["kind"], e["rows"]) for e in told["events"]]
    assert events == [("learn", n), ("queue", n)]
    shown = call("find", "clinic", "patient=17,999").out
    assert f"rows held:         {n}" in shown
    assert "No rows of this id are held." in shown


def test_a_store_without_ids_says_so(call, shop):
    for words in ("find shop id=3", "forget shop --from people.csv --where id=3"):
        assert "No column of ids is declared" in call(words, code=2).err
