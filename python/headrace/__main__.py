"""``python -m headrace`` is the ``headrace`` command."""

from headrace.show.cli import main

if __name__ == "__main__":
    main(prog_name="headrace")
