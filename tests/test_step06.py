"""Step 6: Persistent kernel + tile scheduler."""

STEP = 6


def test_result(check_result):
    check_result()


def test_speed(check_speed):
    check_speed()
