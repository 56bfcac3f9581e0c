"""Step 7: Warp specialization (PIPE_DEPTH=2)."""

STEP = 7


def test_result(check_result):
    check_result()


def test_speed(check_speed):
    check_speed()
