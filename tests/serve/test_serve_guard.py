"""Whom the desk answers: whoever has the token, from its own pages, and nobody else."""

import pytest
from starlette.testclient import TestClient

from traceless import Store
from traceless.serve.desk import Desk

HOME = "http://127.0.0.1:8123"
PAGES = ["/", "/queue", "/history", "/find", "/verify", "/page.css", "/receipt/0"]
FORMS = ["/preview", "/do", "/find", "/verify"]


@pytest.fixture
def stranger(desk):
    return TestClient(desk.application(), base_url=HOME, follow_redirects=False)


def test_the_token_becomes_a_cookie_that_scripts_and_other_pages_do_not_get(desk, stranger):
    opened = stranger.get("/", params={"token": desk.token})
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    said = opened.headers["set-cookie"]
    assert "HttpOnly" in said
    assert "SameSite=strict" in said
    assert stranger.get("/").status_code == 200


@pytest.mark.parametrize("token", [None, "", "secret of the tes", "secret of the test2", "ü"])
@pytest.mark.parametrize("path", [*PAGES, "/nothing"])
def test_without_the_token_there_is_nothing(desk, stranger, path, token):
    answer = stranger.get(path, params={} if token is None else {"token": token})
    assert answer.status_code == 403
    assert "clinic" not in answer.text
    stranger.cookies.set("traceless-8123", token or "x") if token != "ü" else None
    assert stranger.get(path).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "evil.example:8123"])
def test_another_name_for_this_machine_is_refused(desk, clerk, host):
    """Whoever lets his name point to 127.0.0.1 could read every page otherwise."""
    answer = clerk.browser.get("/history", headers={"Host": host})
    assert (answer.status_code, "learn" in answer.text) == (421, False)


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:9"])
def test_forms_of_other_pages_are_refused(desk, clerk, path, origin):
    headers = {} if origin is None else {"Origin": origin}
    fields = {"form_token": desk._guard.form_token, "ids": "0010"}
    answer = clerk.browser.post(path, data=fields, headers=headers)
    assert answer.status_code == 403
    assert Store(desk.path).status().sequence == 1


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("token", [None, "", "x", "secret of the test"])
def test_a_form_without_its_own_token_is_refused(desk, clerk, path, token):
    fields = {"ids": "0010"} | ({} if token is None else {"form_token": token})
    answer = clerk.browser.post(path, data=fields, headers={"Origin": HOME})
    assert (answer.status_code, answer.text) == (403, "This is no form of the desk.")


def test_too_much_is_refused_before_it_is_read(clerk):
    head = {"Origin": HOME, "Content-Length": str(2**40)}
    assert clerk.browser.post("/preview", content=b"x", headers=head).status_code == 413


@pytest.mark.parametrize("path", PAGES)
def test_pages_load_one_stylesheet_and_run_nothing(clerk, path):
    answer = clerk.browser.get(path)
    assert answer.status_code == 200
    policy = dict(
        part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert {"script-src", "img-src", "connect-src"}.isdisjoint(policy)
    assert "unsafe" not in str(policy)
    assert answer.headers["cache-control"] == "no-store"
    for wrong in ("<script", "javascript:", " on", "http://", "https://", "url("):
        assert wrong not in answer.text.replace(" on ", " ").replace(" only", " ").replace(
            " one", ""
        )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_port_80_which_a_browser_leaves_out(clinic, host):
    desk = Desk(clinic, [], token="t", port=80)
    browser = TestClient(desk.application(), base_url=f"http://{host}")
    assert browser.get("/?token=t").status_code == 200
    form = {"form_token": desk._guard.form_token, "ids": "0017"}
    answer = browser.post("/find", data=form, headers={"Origin": f"http://{host}"})
    assert answer.status_code == 200
