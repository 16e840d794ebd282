"""Requests that wait: listed, cancelled, and each with a receipt."""

from people import table

from traceless import Store


def test_requests_are_listed_with_their_receipts(call, shop, tmp_path):
    assert call("queue", "list", "shop").out == "Nothing waits.\n"
    table(tmp_path / "one.csv", shop[:1])
    table(tmp_path / "two.csv", shop[1:3])
    first = call("forget", "shop", "one.csv", "--batch", "--key", "letter")
    assert "traceless receipt shop 2" in first.out
    told = call("forget", "shop", "two.csv", "--batch", "--json").json
    assert told["queued"]["sequence"] == told["receipt"]["sequence"] == 3
    rows = call("queue", "list", "shop", "--json").json["requests"]
    assert [(r["number"], r["key"], r["rows"]) for r in rows] == [(2, "letter", 1), (3, None, 2)]
    assert sum(rows[1]["classes"].values()) == 2
    assert rows[0]["receipt"] == Store("shop").receipt(2).hash
    shown = call("queue", "list", "shop").out
    assert "traceless receipt shop 3" in shown
    assert "0 hours" in shown
    again = call("forget", "shop", "one.csv", "--batch", "--key", "letter")
    assert "answered before" in again.out


def test_a_request_is_cancelled_by_number_or_key(call, shop, tmp_path):
    for k, key in enumerate(("letter", "4", "last", "5")):
        table(tmp_path / f"{k}.csv", shop[k : k + 1])
        call("forget", "shop", f"{k}.csv", "--batch", "--key", key)  # entries 2, 3, 4 and 5
    assert "key of another" in call("queue cancel shop 4", code=2).err
    told = call("queue cancel shop letter --json").json["receipt"]
    assert (told["kind"], told["subject"], told["rows"]) == ("cancel", "entry 2", 1)
    for name in ("last", "3", "5"):  # the last is a number and a key of one request
        call("queue", "cancel", "shop", name)
    assert "No request 'letter' waits" in call("queue cancel shop letter", code=2).err
    call("forget shop 0.csv")  # the row is free again
