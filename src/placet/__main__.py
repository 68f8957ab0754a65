"""``python -m placet``: the command, where it is not on the path."""

from placet.cli import main

if __name__ == "__main__":
    main()
