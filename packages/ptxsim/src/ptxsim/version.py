"""The version of ptxsim, defined only here."""

VERSION = "0.1.0"
