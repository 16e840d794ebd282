"""The pages of the desk, and the commands behind them.

A change is asked for twice: the first form makes a plan and shows what it would do (``--dry-run``),
the second does it. If the store has changed in between, the preview is shown again. Plans, with the
files that were sent, are in memory; a file is on the disk only while a command reads it.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import Any

import click
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from traceless.cli.command import EXPECTED, Command, text_of
from traceless.cli.group import root
from traceless.cli.output import Result, cell
from traceless.cli.queue import waiting
from traceless.exceptions import StoreBusyError
from traceless.pages import LANGUAGES, clean, environment, style
from traceless.serve.guard import Guard
from traceless.store import Store

_KINDS = re.compile(r"(\.(?:csv|tsv|jsonl|ndjson)(?:\.gz)?|\.parquet)$", re.IGNORECASE)
_STORE, _FOLDER = "\0store", "\0folder"  # no form can mean these
_KEPT = 20  # previews and answers that are kept: the oldest goes first


@dataclass(frozen=True)
class Plan:
    """A change that was previewed.

    Parameters
    ----------
    words : list of str
        The command, in which `_STORE` and `_FOLDER` stand for the store and the folder of files.
    files : dict
        Their bytes by name.
    question : str
    sequence : int
        Of the latest entry of the store that the preview was made for.
    """

    words: list[str]
    files: dict[str, bytes]
    question: str
    sequence: int = -1


@dataclass
class Desk:
    """A store as web pages.

    Parameters
    ----------
    path : Path
        The store.
    tables : sequence of str
        Where the rows of ids are.
    token : str
        Whoever has it may use the desk.
    port : int
    """

    path: Path
    tables: Sequence[str]
    token: str
    port: int
    plans: dict[str, Plan] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._guard, self._one = Guard(self.token, self.port), RLock()
        templates = environment(folder=Path(__file__).parent)
        self._template: Callable[[str], Any] = templates.get_template

    @property
    def address(self) -> str:
        """What is to be opened in a browser."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def application(self) -> Starlette:
        """The application."""
        pages: dict[str, Callable[[], Response]] = {
            "/": lambda: self._page("inbox.html", tables=list(map(Path, self.tables))),
            "/queue": self._queue,
            "/history": self._history,
            "/find": lambda: self._page("find.html", answer=None),
            "/verify": lambda: self._page("verify.html", answer=None),
            "/page.css": lambda: PlainTextResponse(style(), media_type="text/css"),
        }
        forms = {"/preview": self._preview, "/do": self._do}
        forms |= {"/find": self._find, "/verify": self._verify}
        routes = [Route(p, lambda _, page=page: self._safely(page)) for p, page in pages.items()]
        routes += [Route(p, self._form(f), methods=["POST"]) for p, f in forms.items()]
        routes.append(Route("/receipt/{number}", lambda r: self._safely(self._receipt, r)))
        routes.append(Route("/done/{number}", self._done))
        return Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, self._guard)])

    # --- looking --------------------------------------------------------------------------

    def _queue(self) -> Response:
        return self._page("queue.html", requests=waiting(self._store))

    def _history(self) -> Response:
        return self._page("history.html", entries=self._store.history()[::-1])

    def _receipt(self, request: Request) -> Response:
        """A receipt, as a page in a language or as JSON."""
        form = request.query_params.get("as", "en")
        try:
            number = int(request.path_params["number"])
            receipt = self._store.receipt(number)
        except (LookupError, ValueError, OverflowError) as error:
            return PlainTextResponse(clean(error), 404)
        if form in LANGUAGES:
            return HTMLResponse(receipt.to_html(form))
        head = {"Content-Disposition": f'attachment; filename="receipt-{number}.json"'}
        return Response(receipt.to_json(), 200, head, "application/json")

    def _find(self, form: dict[str, Any]) -> Response:
        ids = {"ids.txt": _lines(form.get("ids", ""))}
        return self._page(
            "find.html", answer=self._ask(["find", _STORE, f"@{_FOLDER}/ids.txt"], ids)
        )

    def _verify(self, form: dict[str, Any]) -> Response:
        sent = {"receipt.json": form["file"][1]} if "file" in form else {}
        words = ["verify", _STORE, *(f"{_FOLDER}/{name}" for name in sent)]
        return self._page("verify.html", answer=self._ask(words, sent))

    # --- changes --------------------------------------------------------------------------

    def _preview(self, form: dict[str, Any]) -> Response:
        """What a request would change, and the question."""
        if form.get("what") == "cancel":
            words = ["queue", "cancel", _STORE, "--", self._word(form.get("number", ""))]
            return self._planned(Plan(words, {}, "Cancel this request? Its rows stay."))
        if form.get("what") == "flush":
            words = ["queue", "flush", _STORE, *["--force"] * bool(form.get("force"))]
            return self._planned(Plan(words, {}, "Forget all rows that wait?"))
        files, words = {}, ["forget", _STORE, f"--request={form.get('request') or _name()}"]
        where = list(self.tables)
        if "file" in form:
            kind = _KINDS.search(form["file"][0])
            if kind is None:
                raise ValueError(
                    f"{form['file'][0]} is no table that can be read: save it as CSV (UTF-8), or "
                    "send .tsv, .jsonl or .parquet. Nothing was changed."
                )
            where = [f"{_FOLDER}/rows{kind[1].lower()}"]
            files[Path(where[0]).name] = form["file"][1]
        if _lines(form.get("ids", "")):
            files["ids.txt"] = _lines(form["ids"])
            words += [*(f"--from={table}" for table in where), f"--where=@{_FOLDER}/ids.txt"]
        elif files:
            words += where
        return self._planned(Plan(words, files, "Forget these rows?"))

    def _planned(self, plan: Plan, note: str = "") -> Response:
        """The preview of a plan, which is kept if it can be done."""
        sequence = self._store.status().sequence
        answer = self._ask(_with(plan.words, "--dry-run"), plan.files)
        number = ""
        receipt = answer["data"].get("receipt")
        if answer["error"] is None and receipt and not receipt["replayed"]:
            number = secrets.token_urlsafe(12)
            self.plans[number] = replace(plan, sequence=sequence)
            _shorten(self.plans)
        queues = plan.words[0] == "forget"
        given = {"answer": answer, "plan": number, "question": plan.question}
        return self._page("preview.html", **given, queues=queues, note=note)

    def _do(self, form: dict[str, Any]) -> Response:
        """Do what was previewed."""
        number = form.get("plan", "")
        with self._one:  # nothing that the desk does comes between this look and the change
            plan = self.plans.pop(number, None)
            if plan is None:
                said = "This preview is gone: it was answered, or the desk was opened anew since. "
                said += "See the history for what was done. Nothing was changed now."
                return self._page("done.html", answer=_answer(error=said))
            if plan.sequence != self._store.status().sequence:
                said = "The store has changed since this preview. Nothing was changed now: look "
                return self._planned(plan, f"{said}again.")
            more = ["--batch"] if form.get("batch") and plan.words[0] == "forget" else []
            more += ["--yes"] if plan.words[:2] != ["queue", "cancel"] else []
            answer = self._ask(_with(plan.words, *more), plan.files)
            if answer["busy"]:  # so that the same form can be sent again
                self.plans[number] = plan
        self.answers[number] = answer  # at an address that can be gone back to
        _shorten(self.answers)
        return RedirectResponse(f"/done/{number}", 303)

    def _done(self, request: Request) -> Response:
        gone = "This answer is gone: the history has what was done."
        answer = self.answers.get(request.path_params["number"], _answer(error=gone))
        return self._page("done.html", answer=answer)

    # --- inside ---------------------------------------------------------------------------

    @property
    def _store(self) -> Store:
        return Store(self.path)

    def _ask(self, words: Sequence[str], files: dict[str, bytes]) -> dict[str, Any]:
        """What a command answers; one is asked at a time."""
        here = click.Context(root)  # knows the table when an error names its lines and columns
        with self._one, here, tempfile.TemporaryDirectory(prefix="traceless-") as folder:
            for name, content in files.items():
                (Path(folder) / name).write_bytes(content)
            given = [w.replace(_STORE, str(self.path)).replace(_FOLDER, folder) for w in words]
            try:
                result = asked(given)
            except Exception as error:
                said = text_of(error).replace(f"{folder}/", "")
                return _answer(error=said, busy=isinstance(error, StoreBusyError))
        return _answer(result)

    def _word(self, number: str) -> str:
        """What means the waiting request of this number alone: another may have it as its name."""
        names = [(str(one.sequence), one.key) for one in self._store.pending()]
        mine = [one for pair in names if pair[0] == number for one in pair if one]
        return next((w for w in mine if sum(w in pair for pair in names) == 1), number)

    def _page(self, template: str, **values: Any) -> Response:
        answer = values.get("answer") or _answer()
        status = 200 if answer["error"] is None else 409 if answer["busy"] else 422
        form_token, name = self._guard.form_token, self.path.name
        html = self._template(template).render(**values, form_token=form_token, store=name)
        return HTMLResponse(html, status)

    def _safely(self, page: Callable[..., Response], *given: Any) -> Response:
        """A page, or what went wrong."""
        try:
            return page(*given)
        except EXPECTED as error:
            return self._page("done.html", answer=_answer(error=text_of(error)))

    def _form(self, page: Callable[[dict[str, Any]], Response]) -> Callable[[Request], Any]:
        """A page that takes a form of the desk."""

        async def answered(request: Request) -> Response:
            async with request.form(max_files=1, max_part_size=2**20) as form:
                if not self._guard.is_ours(form):
                    return PlainTextResponse("This is no form of the desk.", 403)
                given: dict[str, Any] = {
                    name: text.replace("\0", "")
                    for name, text in form.items()
                    if isinstance(text, str)
                }
                sent = form.get("file")
                if sent is not None and not isinstance(sent, str) and sent.filename:
                    given["file"] = (sent.filename, await sent.read())
            return await run_in_threadpool(self._safely, page, given)

        return answered


def asked(words: Sequence[str]) -> Result:
    """The result of a command, called by its words."""
    command: click.Command = root
    rest = list(words)
    while isinstance(command, click.Group):
        command = command.commands[rest.pop(0)]
    assert isinstance(command, Command)
    parent = click.get_current_context(silent=True)
    with command.make_context(command.name, rest, parent=parent) as context:
        for name in ("as_json", "debug"):
            context.params.pop(name)
        context.meta["as_json"] = True
        return command.result(context)


def _answer(
    result: Result | None = None, error: str | None = None, busy: bool = False
) -> dict[str, Any]:
    """An answer for a template: tables and sentences, or an error."""
    shown = list[Any]()
    for block in result.shown if result else ():
        if isinstance(block, str):
            shown.append(block)
        else:
            shown.append((list(block.headings), [list(map(cell, row)) for row in block.rows]))
    data = {"warnings": [], "receipt": None} | (dict(result.data) if result else {})
    ok = result is None or result.ok
    return {"shown": shown, "data": data, "ok": ok, "error": error, "busy": busy}


def _shorten(kept: dict[str, Any]) -> None:
    """Drop the oldest."""
    while len(kept) > _KEPT:
        kept.pop(next(iter(kept)))


def _with(words: Sequence[str], *options: str) -> list[str]:
    """A command with options, which come before what follows ``--``."""
    end = words.index("--") if "--" in words else len(words)
    return [*words[:end], *options, *words[end:]]


def _lines(ids: str) -> bytes:
    """Ids from a form, one in each line."""
    return "\n".join(one.strip() for one in re.split(r"[\n,;]", ids) if one.strip()).encode()


def _name() -> str:
    """A name for a request that has none, so that a second click does nothing."""
    return f"desk {secrets.token_hex(6)}"
