"""How a chip's matrix units add: random products on a GPU, compared with ptxsim
and with a model of the chip.
"""
