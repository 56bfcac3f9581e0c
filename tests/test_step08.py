"""Step 8: Deeper pipeline (PIPE_DEPTH=4)."""

STEP = 8


def test_result(check_result):
    check_result()


def test_speed(check_speed):
    check_speed()
