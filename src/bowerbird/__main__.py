"""`python -m bowerbird` is the `bowerbird` command."""

from bowerbird.cli.main import main

main()
