"""Imports every file of this folder, so that their unit instructions are registered."""

import importlib
import pkgutil

import ptxsim.units

for file in pkgutil.iter_modules(ptxsim.units.__path__):
    importlib.import_module(f"ptxsim.units.{file.name}")
