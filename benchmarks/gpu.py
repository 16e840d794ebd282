"""On a GPU: exact sums, solutions and predictions of rows on the card, beside products of floats.

    make bench-gpu                             needs a CUDA device: two minutes on an H200
    python -m benchmarks.gpu --quick           a tenth of the rows

Rows are float32 numbers on the card, of K classes, with the papers' penalty, except the largest.
Errors of sums are relative to the largest of the diagonal, those of coefficients to the largest
coefficient. Writes gpu.json to benchmarks/results.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch

from benchmarks.findings import PAPERS, Findings, Record, main
from papers.claims import Claim
from traceless import LSSVC, Knowledge, on_device
from traceless.features import Linear

SIZES = [(1_310_720, 768, 100), (1_310_720, 2048, 100), (1_310_720, 4096, 1000)]
LARGE = (1_281_167, 16_384, 1000)  # rows and classes of ImageNet
PROTOTYPE = (0.042, 0.153)  # seconds that its bare sums took, of the second and third size
SUMS, WRONG = "Sums of products, rows on the card", "Error of these sums"
FIT, COEFFICIENTS = "A fit, up to its coefficients", "Error of the coefficients of a ridge"
RATE = "Labels, and scores: 10^12 operations (2 n J K) a second"
HOST = "Rows in the host's memory: 10^9 bytes a second"
LEFT = "What is left of a tenth of the rows, learned and forgotten"
WHOLE, PART = "LSSVC, with coef_", "of it, LSSVC.fit"
EXACT = "traceless, exact"
COPY, STREAMED = "a copy of pinned pages, which PCIe allows", "Knowledge.of(on_device(X))"
FLOATS: list[tuple[str, bool, Any]] = [  # names, TF32 or not, types
    ("float32", False, torch.float32),
    ("TF32", True, torch.float32),
    ("bfloat16", False, torch.bfloat16),
]


def seconds(job: Callable[[], object], repeats: int = 3) -> float:
    """The median time of a job, with all that it left running, after one that is not counted."""
    taken = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        job()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return median(taken[1:])


def rows(n: int, J: int, K: int) -> tuple[Any, Any]:
    """Embeddings of K classes, as a frozen network might leave them."""
    torch.manual_seed(0)
    X = torch.empty(n, J, device="cuda").normal_()
    y = torch.randint(0, K, (n,), device="cuda")
    centres = torch.randn(K, J, device="cuda")
    for start in range(0, n, 65_536):
        some = slice(start, start + 65_536)
        X[some] += 0.3 * centres[y[some]]
    return X.mul_(0.4).clamp_(-1.98, 1.98), y


def answers(model: LSSVC, X: Any, case: str) -> list[Record]:
    """How fast labels and correctly rounded scores are made."""
    out = []
    for way, n in (("predict", 131_072), ("decision_function", 32_768)):
        some = X[:n]
        work = 2.0 * some.numel() * len(model.classes_)
        took = seconds(partial(getattr(model, way), some))
        out.append(Record(RATE, way, work / took / 1e12, case, "number"))
    return out


def case_of(n: int, J: int, K: int) -> str:
    """A size in words."""
    return f"{n:,} × {J}, {K} classes".replace(",", " ", 1 + (n >= 10**6))


def usual(n: int, J: int, K: int) -> list[Record]:
    """Sums, a fit and answers at one size, and floats beside them."""
    X, y = rows(n, J, K)
    case = case_of(n, J, K)
    known, model = Knowledge.of(Linear(), X, y), LSSVC(**PAPERS)
    took = seconds(partial(Knowledge.of, Linear(), X, y))
    out = [
        Record(SUMS, EXACT, took, case),
        Record(WRONG, EXACT, 0.0, case, "number"),
        *fits(model, X, y, case),
        Record(COEFFICIENTS, EXACT, 0.0, case, "number"),
        *answers(model, X, case),
    ]
    exact = torch.from_numpy(known.feature_gram[:J, :J].copy()).cuda().double() * 2.0**-28
    ours = torch.from_numpy(model.coef_.T.copy()).cuda()
    largest = float(exact.diagonal().max())
    targets = 2.0 * torch.nn.functional.one_hot(y, K) - 1.0
    for way, tf32, kind in FLOATS:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        Y = X.to(kind)
        product = Y.T @ Y
        error = float((product.double() - exact).abs().max()) / largest
        out += [
            Record(SUMS, f"{way} XᵀX", seconds(partial(torch.matmul, Y.T, Y)), case),
            Record(WRONG, f"{way} XᵀX", error, case, "number"),
        ]
        w = ridge(Y, targets.to(kind))
        error = float((w - ours).abs().max() / ours.abs().max())
        out += [Record(COEFFICIENTS, f"{way} ridge", error, case, "number")]
    torch.backends.cuda.matmul.allow_tf32 = False
    return [*out, Record(FIT, "float32 ridge of torch", seconds(partial(ridge, X, targets)), case)]


def fits(model: LSSVC, X: Any, y: Any, case: str, repeats: int = 3) -> list[Record]:
    """A fit, with its coefficients and without."""
    whole = seconds(lambda: model.fit(X, y).coef_, repeats)
    return [
        Record(FIT, WHOLE, whole, case),
        Record(FIT, PART, seconds(partial(model.fit, X, y), repeats), case),
    ]


def ridge(Y: Any, T: Any) -> Any:
    """The coefficients of the same ridge regression in floats, solved in float32."""
    product = Y.T @ Y
    s, n = Y.float().sum(0, keepdim=True), torch.full((1, 1), float(len(Y)), device="cuda")
    A = torch.cat([torch.cat([product.float(), s.T], 1), torch.cat([s, n], 1)])
    A.diagonal().add_(1.0)
    B = torch.cat([(Y.T @ T).float(), T.float().sum(0, keepdim=True)])
    return torch.cholesky_solve(B, torch.linalg.cholesky(A))[:-1].double()


def largest(n: int, J: int, K: int) -> list[Record]:
    """Rows of the size of ImageNet, with the default penalty."""
    X, y = rows(n, J, K)
    case, model = case_of(n, J, K), LSSVC()
    took = seconds(partial(Knowledge.of, Linear(), X, y), 1)
    return [
        Record(SUMS, EXACT, took, case),
        *fits(model, X, y, case, 1),
        *answers(model, X, case),
    ]


def streamed(n: int, J: int, K: int) -> list[Record]:
    """Rows that stay in the host's memory, and how fast they could be sent at all."""
    X, y = rows(n, J, K)
    model, here, labels = LSSVC(**PAPERS).fit(X, y), X.cpu().numpy(), y.cpu().numpy()
    known = Knowledge.of(Linear(), X, y)
    if known != Knowledge.of(Linear(), on_device(here), labels):
        raise SystemExit("Rows that were sent to the card gave other sums.")
    out, page = X[: 2**28 // J], torch.from_numpy(here[: 2**28 // J])
    pinned, case = page.pin_memory(), case_of(n, J, K)
    ways: list[tuple[str, int, Callable[[], object]]] = [
        (STREAMED, here.nbytes, lambda: Knowledge.of(Linear(), on_device(here), labels)),
        ("predict(on_device(X))", here.nbytes, lambda: model.predict(on_device(here))),
        ("X.cuda()", page.nbytes, lambda: out.copy_(page)),
        (COPY, page.nbytes, lambda: out.copy_(pinned, non_blocking=True)),
    ]
    return [Record(HOST, way, size / seconds(job) / 1e9, case, "number") for way, size, job in ways]


def taken_back(n: int, J: int, K: int) -> list[Record]:
    """Rows are learned with all others, and a tenth of them forgotten in ten parts.

    Coefficients then, against those of a model that never saw them in the same arithmetic,
    relative to the largest: from sums, and from the recursion that updates an inverse.
    """
    X, y = rows(n, J, K)
    kept, parts = n - n // 10, [slice(n - n // 10 + k, n, 10) for k in range(10)]
    never, model = LSSVC(**PAPERS).fit(X[:kept], y[:kept]), LSSVC(**PAPERS).fit(X, y)
    for some in parts:
        model.forget(X[some], y[some])
    left = abs(model.coef_ - never.coef_).max() / abs(never.coef_).max()
    out, case = [Record(LEFT, EXACT, float(left), case_of(n, J, K), "number")], case_of(n, J, K)
    targets = 2.0 * torch.nn.functional.one_hot(y, K) - 1.0
    for way, tf32, kind in [("float64", False, torch.float64), *FLOATS]:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        sums = partial(float_sums, X, targets, kind)
        total, fresh = sums(slice(0, n)), sums(slice(0, kept))
        for some in parts:
            total = total - sums(some)
        both = [
            torch.linalg.solve(S[:, :J] + torch.eye(J, device="cuda"), S[:, J:])
            for S in (total.double(), fresh.double())
        ]
        out.append(Record(LEFT, f"{way} sums", apart(*both), case, "number"))
    torch.backends.cuda.matmul.allow_tf32 = False
    for way, kind in (("float64", torch.float64), ("float32", torch.float32)):
        S = float_sums(X, targets, torch.float64, slice(0, kept))
        P = torch.linalg.inv(S[:, :J] + torch.eye(J, device="cuda")).to(kind)
        W = before = P @ S[:, J:].to(kind)
        for sign in (1.0, -1.0) * 10:
            for some in parts:
                A, T = X[some][:1024].to(kind), targets[some][:1024].to(kind)
                inner = sign * torch.eye(len(A), dtype=kind, device="cuda") + A @ P @ A.T
                gain = torch.linalg.solve(inner, A @ P).T
                W, P = W + gain @ (T - A @ W), P - gain @ (A @ P)
        out.append(Record(LEFT, f"recursion in {way}, ten times", apart(W, before), case, "number"))
    return out


def float_sums(X: Any, targets: Any, kind: Any, some: slice) -> Any:
    """XᵀX, and beside it XᵀT, of some rows in floats, a block at a time, kept in float32 or 64."""
    total, kept = 0.0, torch.promote_types(kind, torch.float32)
    for Y, T in zip(X[some].split(131_072), targets[some].split(131_072), strict=True):
        Y, T = Y.to(kind), T.to(kind)
        total = total + torch.cat([Y.T @ Y, Y.T @ T], 1).to(kept)
    return total


def apart(W: Any, other: Any) -> float:
    """How far coefficients are apart, relative to the largest."""
    return float((W.double() - other.double()).abs().max() / other.double().abs().max())


def measure(quick: bool) -> Findings:
    """All sizes."""
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks.gpu needs a CUDA device, and torch sees none.")
    share = 10 if quick else 1
    records: list[Record] = []
    for n, J, K in SIZES:
        records += usual(n // share, J, K)
        torch.cuda.empty_cache()
    for measured in (streamed, taken_back):
        records += measured(SIZES[1][0] // share, *SIZES[1][1:])
        torch.cuda.empty_cache()
    records += largest(LARGE[0] // share, *LARGE[1:])
    found = {(r.job, r.way, r.case): r.value for r in records}
    cases = [case_of(n // share, J, K) for n, J, K in (*SIZES, LARGE)]
    claims = []
    for case, took in zip(cases[1:3], PROTOTYPE, strict=True):
        for job, way in ((SUMS, EXACT), (FIT, PART)):
            what = f"{way.removeprefix('of it, ')} / the prototype's sums, {case}"
            claims.append(Claim(what, found[job, way, case] / (took / share), 1.1))
    claims += [
        Claim(f"seconds of the sums, {cases[3]}", found[SUMS, EXACT, cases[3]], 3.0),
        Claim(f"seconds of the fit, {cases[3]}", found[FIT, WHOLE, cases[3]], 5.0),
        Claim(f"10^12 operations, {cases[3]}", found[RATE, "predict", cases[3]], 100.0, True),
        Claim(
            "rows streamed from the host / a copy of pinned pages",
            found[HOST, STREAMED, cases[1]] / found[HOST, COPY, cases[1]],
            0.6,
            True,
        ),
    ]
    notes = [
        f"Card: {torch.cuda.get_device_name(0)}, torch {torch.__version__}. Times are medians of "
        "three (of the largest size: one), after one that is not counted.",
        "The errors of our sums and coefficients are 0: they are exact, and correctly rounded.",
        "cuML is not on this machine, and nothing outside it can be reached: the ridges in floats "
        "are torch's own products and Cholesky factors.",
    ]
    return Findings(records, claims, notes)


if __name__ == "__main__":
    main(measure, __doc__)
