"""Objects used before, after or against their contract: mbarriers, TMEM, copies, CTAs."""
