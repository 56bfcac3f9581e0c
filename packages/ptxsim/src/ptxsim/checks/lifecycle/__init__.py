"""Checks for objects used too early, too late or against their contract: mbarriers, TMEM, copies, CTAs."""
