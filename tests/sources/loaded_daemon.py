"""pyspark's daemon, which forks Python workers, with what these import anyway: seconds for each.

Every task that fails takes its worker along, and most tests of Spark let tasks fail.
"""

if __name__ == "__main__":
    import pandas  # noqa: F401
    import pyarrow  # noqa: F401
    from pyspark import daemon

    from traceless import LSSVC  # noqa: F401

    daemon.manager()
