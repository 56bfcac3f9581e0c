"""Imports every module of this package, which registers all unit instructions."""

import importlib
import pkgutil

import ptxsim.units

for file in pkgutil.iter_modules(ptxsim.units.__path__):
    importlib.import_module(f"ptxsim.units.{file.name}")
