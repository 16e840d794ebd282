"""Sites that share a model and nothing else: the total of their sums, and no site's own.

Each site has rows that nobody else may see, and a coordinator that nobody need trust adds up
what they have learned. Exact sums are integers, so masks cancel to the bit: the total has the
digest of a plain merge.

Examples
--------
>>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
>>> from sklearn.datasets import load_iris
>>> from traceless import LSSVC
>>> from traceless.federation import Agreement, Coordinator, Site, public_key
>>> X, y = load_iris(return_X_y=True)
>>> names = ["east", "north", "south", "west"]
>>> keys = {name: Ed25519PrivateKey.generate() for name in names}
>>> pieces = {name: LSSVC().fit(X[k::4], y[k::4]).knowledge_ for k, name in enumerate(names)}
>>> terms = Agreement.like(
...     pieces["east"], {name: public_key(keys[name]) for name in names}, minimum_rows=10
... )
>>> sites = {name: Site(terms, name, keys[name], pieces[name]) for name in names}
>>> coordinator = Coordinator(terms)
>>> letters = [site.start() for site in sites.values()]
>>> while coordinator.step:
...     for letter in letters:
...         _ = coordinator.take(letter)
...     letters = [sites[name].answer(data) for name, data in coordinator.next().items()]
>>> coordinator.knowledge.digest() == sum(pieces.values()).digest()
True
>>> clf = LSSVC().merge(coordinator.knowledge)
"""

try:
    import cryptography  # noqa: F401
except ImportError as error:
    raise ImportError("A federation needs cryptography: pip install 'traceless[store]'") from error

from traceless.federation.agreement import Agreement
from traceless.federation.coordinator import Coordinator
from traceless.federation.site import Site, public_key

__all__ = ["Agreement", "Coordinator", "Site", "public_key"]
