"""Entry of `python -m lab_cli`."""

from lab_cli.app import main

if __name__ == "__main__":
    raise SystemExit(main())
