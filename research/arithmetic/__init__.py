"""How matrix units of a chip add: random products on a GPU, beside ptxsim and beside a model of the chip."""
