"""Step 4: TMA async load + TMA store."""

STEP = 4


def test_result(check_result):
    check_result()


def test_speed(check_speed):
    check_speed()
