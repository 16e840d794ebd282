"""pyspark's daemon, which forks Python workers, with what these import anyway: seconds for each.

Every task that fails takes its worker along, and most of these tests let tasks fail.
"""

import pandas  # noqa: F401
import pyarrow  # noqa: F401
from pyspark import daemon

import traceless.sources  # noqa: F401
from traceless import LSSVC  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
