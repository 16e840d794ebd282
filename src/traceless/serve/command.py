"""``traceless serve``: open the desk."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceless.cli import inputs
from traceless.cli.command import command
from traceless.cli.output import Result

if TYPE_CHECKING:
    from traceless.store import Store


@command("traceless serve clinic", "traceless serve clinic --from patients.csv --port 8765")
@inputs.store_argument
@inputs.rows_option("--from", "tables", help="A table of yours, for requests that give ids only.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="By default a free one.")
def serve(store: Store, tables: Sequence[str], port: int) -> Result:
    """Open the desk: requests, queue, receipts, find and history as web pages on this machine.

    Prints the address to open, with a token: whoever has it can use the store as you can. It ends
    with Ctrl-C. Only programs on this machine can reach it.
    """
    try:
        import uvicorn

        from traceless.serve.desk import Desk
    except ImportError as error:
        raise ImportError("The desk needs more packages: pip install 'traceless[serve]'") from error
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
        except OSError as error:
            raise OSError(error.errno, error.strerror, f"Port {port}") from error
        listening.listen()  # before the address is printed
        desk = Desk(
            Path(store.path).resolve(),
            [str(Path(table).resolve()) if Path(table).exists() else table for table in tables],
            token=secrets.token_urlsafe(32),
            port=listening.getsockname()[1],
        )
        said = f"Open {desk.address} in a browser of this machine. Ctrl-C closes the desk."
        click.echo(said, err=click.get_current_context().meta["as_json"])
        settings = uvicorn.Config(desk.application(), log_level="warning", server_header=False)
        with suppress(KeyboardInterrupt):  # Ctrl-C is how it ends
            uvicorn.Server(settings).run(sockets=[listening])
    return Result({"closed": True}, ["The desk is closed."])
