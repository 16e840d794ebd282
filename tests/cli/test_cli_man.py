import re
import shutil
import subprocess

import click
import pytest

from traceless.cli.defaults import all_commands
from traceless.cli.group import root
from traceless.cli.man import COMMON, page


def test_the_page_has_every_command_option_and_example(call):
    text = call("man").out.replace(r"\-", "-")
    for name, command in all_commands(root):
        section = re.search(rf"^\.SS traceless {name} .*?(?=^\.SS|\Z)", text, re.M | re.S)[0]
        for option in command.params:
            if isinstance(option, click.Option) and option.opts[0] not in COMMON:
                assert re.search(rf"^\.B .*{option.opts[0]}\b", section, re.M), option.opts
        assert [line for line in command.examples if f"    {line}" not in section] == []
        first = command.help.split(".")[0]
        assert " ".join(first.split()) in section
    for option in COMMON:
        assert option in text.partition(".SH COMMANDS")[0]
    assert call("man", "--json").json["page"] == call("man").out.rstrip("\n")


def test_nothing_in_a_help_is_obeyed():
    @click.group()
    def group():
        r"""A \fB group.

        .so of its own
        """

    @group.command()
    @click.option("--x", help="'br \\ -")
    def one(x):
        """One."""

    lines = page(group).splitlines()
    assert r"A \efB group." in lines
    assert r"\&.so of its own" in lines
    assert r"\&'br \e \-" in lines


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_takes_it_without_a_word():
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww"], input=page(root), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "traceless learn" in done.stdout
