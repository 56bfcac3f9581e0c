"""Step 10: Multi-consumer (final kernel)."""

STEP = 10


def test_result(check_result):
    check_result()


def test_speed(check_speed):
    check_speed()
