"""The desk in a browser, over a server that listens: what only a browser can tell."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from traceless import Store

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium with chromium-driver here: .ci/run installs them"
)
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars
--disable-background-networking --disable-component-update --disable-sync"""


class Server:
    """A process of ``traceless serve``."""

    def __init__(self, clinic):
        words = [sys.executable, "-m", "traceless", "serve", clinic, "--from", "all.csv"]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"http://\S+", self._process.stdout.readline())[0]
        self.home = self.address.partition("/?")[0]

    def end(self, how=signal.SIGINT):
        self._process.send_signal(how)
        code = self._process.wait(timeout=30)
        self._process.stdout.close()
        return code


@pytest.fixture
def server(clinic):
    started = Server(clinic)
    yield started
    if started._process.poll() is None:
        started.end()


@pytest.fixture
def browser(tmp_path):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    downloads = {"download.default_directory": str(tmp_path), "download.prompt_for_download": False}
    options.add_experimental_option("prefs", downloads)
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path / 'browser'}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(DRIVER)
    started = webdriver.Chrome(options, service)
    started.set_page_load_timeout(60)
    yield started
    problems = [one["message"] for one in started.get_log("browser") if one["level"] == "SEVERE"]
    started.quit()
    expected = "favicon", "status of 4", "frame-ancestors 'none'"
    assert not [one for one in problems if not any(known in one for known in expected)]


def press(browser, *keys):
    """Keys for whatever has the focus."""
    for key in keys:
        webdriver.ActionChains(browser).send_keys(key).perform()


def enter(browser):
    """The enter key, and the page that it leads to."""
    browser.execute_script("window.before = true")
    press(browser, Keys.ENTER)
    there = "return !window.before && document.readyState === 'complete'"
    WebDriverWait(browser, 60).until(lambda one: one.execute_script(there))


def text(browser):
    return browser.find_element(By.TAG_NAME, "body").text


def tab_to(browser, words):
    """Go on with the tab key until something with these words has the focus."""
    for _ in range(30):
        focused = browser.switch_to.active_element
        named = focused.text or focused.get_attribute("id")
        if focused.tag_name != "body" and words in named:
            return
        press(browser, Keys.TAB)
    raise AssertionError(f"the tab key does not lead to {words!r}")


def test_request_receipt_and_verify_by_keyboard_alone(browser, server, clinic, tmp_path):
    browser.get(server.address)
    assert browser.current_url == f"{server.home}/"  # the token is gone from the address
    press(browser, "0017, 0018")
    tab_to(browser, "request")
    press(browser, "letter 7")
    enter(browser)
    assert "Forget these rows?" in text(browser)
    assert "200 → 190" in text(browser)
    tab_to(browser, "Forget them now")
    enter(browser)
    assert Store(clinic).status().rows == 190
    tab_to(browser, "receipt-2.json")
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    press(browser, Keys.ENTER)
    kept = tmp_path / "receipt-2.json"
    WebDriverWait(browser, 60).until(lambda _: kept.exists())
    assert json.loads(kept.read_text())["format"] == "traceless receipt 1"
    tab_to(browser, "Receipt 2")
    enter(browser)
    assert "10 records were removed from the model." in text(browser)
    browser.back()
    tab_to(browser, "Verify")
    enter(browser)
    browser.switch_to.active_element.send_keys(str(kept))  # as the browser's dialog would give it
    tab_to(browser, "Verify the store")
    enter(browser)
    assert "the store continues the history of the receipt" in text(browser)


def test_it_fits_a_narrow_screen_and_the_style_applies(browser, server):
    metrics = {"width": 420, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(server.address)
    press(browser, "0017")
    tab_to(browser, "Show what")
    enter(browser)
    fits = "return document.documentElement.scrollWidth <= innerWidth"
    assert browser.execute_script(fits)
    tab_to(browser, "Put them")
    enter(browser)
    for path in ("/", "/queue", "/history", "/find", "/verify", "/receipt/1", "/receipt/1?as=de"):
        browser.get(server.home + path)
        assert browser.execute_script(fits), path
        colour = browser.find_element(By.TAG_NAME, "header").value_of_css_property(
            "border-bottom-width"
        )
        assert colour == "3px", path  # the policy lets the style in


def test_a_wrong_token_and_none(browser, server):
    for address in (f"{server.home}/?token=x", f"{server.home}/history", server.home):
        browser.get(address)
        assert "Open the address that traceless serve printed" in text(browser)
        assert "clinic" not in text(browser)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{server.home}/?token=x")


def test_another_page_cannot_send_a_form_even_in_an_open_browser(browser, server, clinic, tmp_path):
    browser.get(server.address)
    page = tmp_path / "evil.html"
    page.write_text(
        f'<form method="post" action="{server.home}/preview"><input name="ids" value="0017">'
        '<input name="form_token" value="x"><button autofocus>Win</button></form>'
        f'<iframe src="{server.home}/history"></iframe>'
    )
    browser.get(page.as_uri())
    browser.switch_to.frame(0)
    assert "learn" not in text(browser)
    browser.switch_to.default_content()
    browser.find_element(By.TAG_NAME, "button").click()
    assert "Open the address that" in text(browser) or "another page" in text(browser)
    assert Store(clinic).status().sequence == 1


def test_two_tabs(browser, server, clinic):
    def preview(one):
        browser.get(server.home)
        press(browser, one)
        tab_to(browser, "Show what")
        enter(browser)

    browser.get(server.address)
    preview("0017")
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    preview("0018")
    second = browser.current_window_handle
    browser.switch_to.window(first)
    tab_to(browser, "Forget them now")
    enter(browser)
    browser.switch_to.window(second)
    tab_to(browser, "Forget them now")
    enter(browser)
    assert "The store has changed since this preview" in text(browser)
    assert "195 → 190" in text(browser)
    assert Store(clinic).status().rows == 195
    tab_to(browser, "Forget them now")
    enter(browser)
    assert Store(clinic).status().rows == 190


def test_kill_9_between_two_clicks(browser, server, clinic):
    """Nothing has changed, nothing is left behind, and the same request can be made again."""
    browser.get(server.address)
    press(browser, "0017")
    tab_to(browser, "Show what")
    enter(browser)
    left = set(os.listdir(clinic))
    server.end(signal.SIGKILL)
    assert Store(clinic).verify().ok
    assert Store(clinic).status().sequence == 1
    assert set(os.listdir(clinic)) == left
    again = Server(clinic)
    try:
        browser.get(again.address)
        press(browser, "0017")
        tab_to(browser, "Show what")
        enter(browser)
        tab_to(browser, "Forget them now")
        enter(browser)
        assert Store(clinic).status().rows == 195
    finally:
        assert again.end() == 0
