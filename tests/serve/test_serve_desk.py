"""The desk does what the commands do, and asks as they do."""

import concurrent.futures
import contextlib
import html
import re
import tempfile
import threading

import pyarrow.csv
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from traceless import Store
from traceless.cli.group import root
from traceless.serve.desk import Desk
from traceless.store import Receipt
from traceless.store.lock import write_lock


def command(*words):
    return CliRunner().invoke(root, list(map(str, words))).stdout


def entries(desk):
    return [entry.kind for entry in Store(desk.path).history()]


def test_a_request_by_ids_is_seen_and_agreed_to_before_anything_changes(desk, clerk):
    page = clerk.send("/preview", ids="0017, 0018", request="letter 7")
    told = command("forget", desk.path, "--from", "all.csv", "--where", "0017,0018", "--dry-run")
    for line in told.splitlines():
        if line.startswith(("rows held", "digest")):
            assert line.split()[-1] in page
    assert entries(desk) == ["new", "learn"]
    assert "Forget these rows?" in page
    page = clerk.send("/do", batch="")
    assert entries(desk) == ["new", "learn", "forget"]
    last = Store(desk.path).history()[-1]
    assert (last.keys, last.rows) == (("letter 7",), 10)
    assert last.digest_after in page
    receipt = Receipt.from_json(clerk.get("/receipt/2?as=json"))
    assert receipt == Store(desk.path).receipt(2)
    assert receipt.hash in clerk.get("/receipt/2")
    assert "10 Datensätze wurden aus dem Modell entfernt." in clerk.get("/receipt/2?as=de")
    assert "letter 7" in clerk.get("/history")
    assert clerk.browser.get("/receipt/99").status_code == 404


def test_a_request_waits_in_the_queue_with_its_clock_and_can_be_cancelled(desk, clerk):
    clerk.send("/preview", ids="0017")
    clerk.send("/do", batch="1")
    assert entries(desk)[-1] == "queue"
    page = clerk.get("/queue")
    assert re.search(r"\b(28|29|30|31) days left", page)
    assert "Nothing waits." not in page
    clerk.send("/preview", what="cancel", number="2")
    assert entries(desk)[-1] == "queue"
    clerk.send("/do")
    assert entries(desk)[-1] == "cancel"
    assert "Nothing waits." in clerk.get("/queue")


def test_requests_that_are_named_like_the_numbers_of_others_can_be_cancelled(desk, clerk):
    for one, name in (("0017", "3"), ("0018", "the other")):
        clerk.get("/")
        clerk.send("/preview", ids=one, request=name)
        clerk.send("/do", batch="1")
    for number in ("3", "2"):
        clerk.get("/queue")
        clerk.send("/preview", what="cancel", number=number)
        clerk.send("/do")
        assert number not in [str(one.sequence) for one in Store(desk.path).pending()]
    assert entries(desk)[-2:] == ["cancel", "cancel"]


def test_what_waits_is_forgotten(desk, clerk):
    clerk.send("/preview", ids="0017")
    clerk.send("/do", batch="1")
    clerk.get("/queue")
    page = clerk.send("/preview", what="flush")
    assert "5 rows wait for others" in page
    assert "<h2>" not in page  # nothing to agree to
    clerk.get("/queue")
    clerk.send("/preview", what="flush", force="1")
    clerk.send("/do")
    assert entries(desk)[-1] == "forget"


@pytest.mark.parametrize("name", ["rows.csv", "ROWS.CSV", "../../etc/rows.csv", "x.csv\x00.csv"])
def test_rows_come_as_a_file(desk, clerk, name):
    lines = (desk.path.parent / "all.csv").read_text().splitlines()
    mine = [lines[0], *(line for line in lines if line.startswith("0017"))]
    files = {"file": (name, "\n".join(mine).encode())}
    clerk.send("/preview", files=files)
    clerk.send("/do", batch="")
    assert Store(desk.path).status().rows == 195
    assert Store(desk.path).find("0017").held == 0


def test_ids_are_looked_up_in_a_file_that_was_sent(desk, clerk):
    files = {"file": ("all.csv", (desk.path.parent / "all.csv").read_bytes())}
    clerk.send("/preview", files=files, ids="0011")
    clerk.send("/do", batch="")
    assert Store(desk.path).find("0011").held == 0
    assert Store(desk.path).find("0012").held == 5


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"ids": "17"}, "Held is 0017"),
        ({"ids": "9999"}, "holds no rows of patient 9999"),
        ({"ids": "@/etc/passwd"}, "holds no rows of patient @/etc/passwd"),
        ({"ids": "--yes"}, "holds no rows of patient --yes"),
        ({"ids": ""}, "Say what to forget"),
        ({"what": "cancel", "number": "--help"}, "waits"),
    ],
)
def test_what_cannot_be_done_is_said(desk, clerk, fields, said):
    assert said in clerk.send("/preview", status=422, **fields)
    assert entries(desk) == ["new", "learn"]
    assert desk.plans == {}


def test_a_refusal_names_the_line_of_the_file_as_the_command_does(desk, clerk):
    sent = {"file": ("mine.csv", b"patient,age,pressure,state\n0017,1,2,ill\n")}
    page = clerk.send("/preview", status=422, files=sent)
    assert "rows.csv, line 2" in page
    assert "counted from 0" not in page


@pytest.mark.parametrize("name", ["rows.xlsx", "<b>", "rows.csv.exe", "rows.txt"])
def test_a_file_of_no_known_kind_is_refused_by_its_name(desk, clerk, name):
    page = clerk.send("/preview", status=422, files={"file": (name, b"PK\x03\x04")})
    assert f"{html.escape(name)} is no table that can be read: save it as CSV" in page
    assert desk.plans == {}


@pytest.mark.parametrize("number", ["-1", "99", "x", "9" * 25, "9" * 5000])
def test_there_is_no_such_receipt(clerk, number):
    assert clerk.browser.get(f"/receipt/{number}").status_code == 404


def test_a_request_that_was_answered_is_not_asked_about_again(desk, clerk):
    clerk.send("/preview", ids="0017", request="letter 7")
    clerk.send("/do", batch="")
    clerk.get("/")
    page = clerk.send("/preview", ids="0017", request="letter 7")
    assert "This request was answered before" in page
    assert "<h2>" not in page
    assert desk.plans == {}


def test_find_is_the_answer_of_the_command(desk, clerk):
    clerk.get("/find")
    page = clerk.send("/find", ids="0017\n17")
    assert "Held is 0017" in page
    assert "<dt>rows held</dt><dd>5</dd>" in page
    assert "names no id" in clerk.send("/find", status=422, ids=" ")


def test_verify_says_what_is_proven(desk, clerk):
    clerk.get("/verify")
    assert "Proven: the ledger" in clerk.send("/verify")
    text = Store(desk.path).receipt().to_json()
    page = clerk.send("/verify", files={"file": ("receipt.json", text.encode())})
    assert "the store continues the history of the receipt" in page
    forged = {"file": ("receipt.json", text.replace("index 1", "index 0").encode())}
    assert "A check failed: kept receipt" in clerk.send("/verify", files=forged)
    page = clerk.send("/verify", status=422, files={"file": ("receipt.html", b"<html>")})
    assert "receipt.json is no receipt" in page


def test_a_second_click_does_nothing(desk, clerk):
    clerk.send("/preview", ids="0017")
    asked = clerk.page
    clerk.send("/do", batch="")
    clerk.page = asked
    assert "This preview is gone" in clerk.send("/do", status=422, batch="")
    assert entries(desk) == ["new", "learn", "forget"]


def test_in_two_tabs_the_second_sees_what_the_first_has_changed(desk, clerk):
    clerk.send("/preview", ids="0017")
    first = clerk.page
    clerk.get("/")
    clerk.send("/preview", ids="0018")
    second, clerk.page = clerk.page, first
    clerk.send("/do", batch="")
    clerk.page = second
    page = clerk.send("/do", batch="")
    assert "The store has changed since this preview." in page
    assert "195 → 190" in page
    assert entries(desk) == ["new", "learn", "forget"]
    clerk.send("/do", batch="")
    assert Store(desk.path).status().rows == 190


def test_of_two_previews_that_are_agreed_to_at_once_one_is_shown_again(desk, clerk, monkeypatch):
    for one in ("0017", "0018"):
        clerk.get("/")
        clerk.send("/preview", ids=one)
    forms = [{"plan": number, "batch": ""} for number in desk.plans]
    ask, both = type(desk)._ask, threading.Barrier(2)

    def slowly(self, words, files):
        with contextlib.suppress(threading.BrokenBarrierError):  # the second never comes
            both.wait(1)
        return ask(self, words, files)

    monkeypatch.setattr(type(desk), "_ask", slowly)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(desk._do, forms))
    assert sorted(answer.status_code for answer in answers) == [200, 303]
    assert entries(desk) == ["new", "learn", "forget"]


def test_another_writer_is_waited_for_by_the_person(desk, clerk):
    clerk.send("/preview", ids="0017")
    asked = clerk.page
    with write_lock(Store(desk.path)._folder.lock, 0.0):
        assert "Try again" in clerk.send("/do", status=409, batch="")
    assert entries(desk) == ["new", "learn"]
    clerk.page = asked
    clerk.send("/do", batch="")
    assert entries(desk) == ["new", "learn", "forget"]


def test_no_rows_are_left_on_the_disk_nor_many_in_memory(desk, clerk, monkeypatch, tmp_path):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    for k in range(25):
        clerk.get("/")
        clerk.send("/preview", ids=f"00{10 + k}")
    assert len(desk.plans) == 20
    assert list((tmp_path / "temporary").iterdir()) == []


def test_names_from_anywhere_are_only_text(desk, clerk):
    hostile = '"><script>alert(1)</script>\u202e'
    page = clerk.send("/preview", ids="0017", request=hostile)
    clerk.send("/do", batch="1")
    for path in ("/queue", "/history", "/receipt/2"):
        page = clerk.get(path)
        assert "<script" not in page
        assert "\u202e" not in page
        assert "&lt;script&gt;" in page


def test_the_version_of_a_table_that_is_followed(desk, clerk, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    assert "follows" not in clerk.get("/history")
    deltalake.write_deltalake(
        tmp_path / "visits", pyarrow.csv.read_csv(desk.path.parent / "all.csv")
    )
    Store(desk.path).follow(tmp_path / "visits", again=True)
    page = clerk.get("/history")
    assert "is at its version 0" in page
    assert "visits" in page


def test_a_store_that_is_damaged_is_said_to_be(desk, clerk):
    (desk.path / "ledger.sqlite").write_bytes(b"x" * 100)
    for path in ("/queue", "/history"):
        assert "not a store" in clerk.get(path) or "damaged" in clerk.page


def test_a_store_without_tables_says_which_rows_it_needs(clinic):
    desk = Desk(clinic, [], "t", 8123)
    browser = TestClient(desk.application(), base_url="http://127.0.0.1:8123")
    page = browser.get("/?token=t").text
    assert "A table with their rows; without ids" in page
