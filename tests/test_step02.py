"""Step 2: K-loop accumulation."""

STEP = 2


def test_result(check_result):
    check_result()


def test_speed(check_speed):
    check_speed()
