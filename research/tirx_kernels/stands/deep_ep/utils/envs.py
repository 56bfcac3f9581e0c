"""The machine's properties, as DeepEP would find them."""


def get_nvlink_gbs() -> float:
    """GB/s of NVLink in one direction: of a B200, 18 links of NVLink 5 at 50 each."""
    return 900.0
