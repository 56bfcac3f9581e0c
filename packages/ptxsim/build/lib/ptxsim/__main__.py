"""`python -m ptxsim` is the command `ptxsim`."""

from ptxsim.cli.app import main

main()
