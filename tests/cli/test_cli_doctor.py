from traceless.arithmetic import core
from traceless.cli import doctor as doctors


def test_the_doctor_finds_this_machine_sound(call):
    told = call("--version", "--json").json
    assert [c["check"] for c in told["checks"]] == list(doctors.TESTS)
    assert told["machine"]["numpy"]
    assert "correctly rounded" in call("--version").out


def test_the_doctor_says_what_to_install_for_speed(call, monkeypatch):
    monkeypatch.setattr(doctors, "TESTS", {})
    for compiled in (True, False):
        monkeypatch.setattr(core, "COMPILED", compiled)
        assert ("apt install g++" in call("--version").out) is not compiled


def test_the_doctor_finds_other_bits(call, monkeypatch):
    monkeypatch.setattr(doctors, "DIGEST", "0" * 64)
    told = call("--version", "--json", code=1).json
    failed = {c["check"] for c in told["checks"] if not c["ok"]}
    assert failed == set(doctors.TESTS)
    monkeypatch.undo()
    monkeypatch.setitem(doctors.COEFFICIENTS, (True, True), "0" * 64)
    told = call("--version", "--json", code=1).json
    assert {c["check"] for c in told["checks"] if not c["ok"]} == {"bits", "one thread"}
