"""`python -m holomem` is the program `holomem`."""

from holomem.cli import main

if __name__ == "__main__":
    main(prog_name="holomem")
