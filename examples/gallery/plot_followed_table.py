"""
A customer is deleted from a table, and from the model
======================================================

A store follows a Delta table: each version of it is one change of the
model. Here customers come month by month, some ask to be forgotten, and the
shop deletes them where it always did, in the table.
"""

import tempfile
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from deltalake import DeltaTable, write_deltalake

from traceless import LSSVC, RevealingWarning, Store
from traceless.features import Number, Table
from traceless.sources import Files, Schema

warnings.simplefilter("ignore", RevealingWarning)
folder = tempfile.mkdtemp()
table, rng = f"{folder}/customers", np.random.default_rng(0)
schema = Schema(
    Table([Number("age"), Number("visits")]), ("bought",), id="customer"
)


def month(first: int, n: int) -> pd.DataFrame:
    age, visits = rng.integers(18, 80, n), rng.poisson(4, n)
    bought = np.where(
        visits + age / 20 + rng.normal(size=n) > 6, "yes", "no"
    )
    return pd.DataFrame(
        {
            "customer": range(first, first + n),
            "age": age,
            "visits": visits,
            "bought": bought,
        }
    )


feed = {"delta.enableChangeDataFeed": "true"}
write_deltalake(table, month(0, 400), configuration=feed)
about = {"table": schema.facts()}
store = Store.new(f"{folder}/shop", LSSVC(schema.table), about=about)
store.follow(table)

# %%
# A year of commits: new customers, and deletions with SQL.

for k in range(1, 12):
    write_deltalake(table, month(400 * k, 400), mode="append")
    asked = rng.choice(400 * k, size=30, replace=False)
    numbers = ", ".join(map(str, asked))
    DeltaTable(table).delete(f"customer IN ({numbers})")
DeltaTable(table).delete("customer = 7")
receipts = store.follow(table)
print(receipts[-1].subject)

# %%
# The model is the one of the rows that the table holds.

rows = Files([DeltaTable(table).to_pyarrow_table()], schema).arrays()
fitted = LSSVC(schema.table, fingerprint=True).fit(*rows)
print("as a fit:", store.status().digest == fitted.digest())

versions = range(1, len(receipts) + 1)
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.bar(versions, [receipt.added for receipt in receipts], color="#1b6ca8")
ax.bar(versions, [-r.removed for r in receipts], color="#c8553d")
ax.step(versions, [r.held / 10 for r in receipts], color="k", where="mid")
ax.legend(
    ["a tenth of the rows held", "learned", "forgotten"], frameon=False
)
ax.set(xlabel="version of the table", ylabel="rows")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
