"""``python -m traceless`` is the command line."""

from traceless.cli import process

if __name__ == "__main__":
    process()
