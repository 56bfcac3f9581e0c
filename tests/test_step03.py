"""Step 3: Spatial tiling (multi-CTA)."""

STEP = 3


def test_result(check_result):
    check_result()


def test_speed(check_speed):
    check_speed()
