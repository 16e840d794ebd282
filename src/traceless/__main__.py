"""``python -m traceless`` is the command line."""

from traceless.cli import main

if __name__ == "__main__":
    main()
