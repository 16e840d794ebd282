"""The command line: python -m papers."""

from papers.__main__ import main


def test_unknown_names_are_refused_in_one_line(capsys):
    assert main(["smith1999"]) == 2
    shown = capsys.readouterr()
    known = "lee2019, zhu2018, karasuyama2009"
    assert shown.err == f"There is no experiment 'smith1999'; try {known}.\n"
    assert not shown.out


def test_without_matplotlib_the_extra_is_named(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["lee2019"]) == 2
    assert capsys.readouterr().err.strip().endswith("pip install -e '.[papers]'")


def test_a_folder_that_cannot_be_made_is_told_before_the_work(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["lee2019", "--out", str(tmp_path / "file")]) == 2
    assert "Name another one with --out" in capsys.readouterr().err
