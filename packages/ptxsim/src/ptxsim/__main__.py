"""`python -m ptxsim` runs the command `ptxsim`."""

from ptxsim.cli.app import main

main()
