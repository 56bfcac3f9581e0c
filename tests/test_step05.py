"""Step 5: Software pipeline (PIPE_DEPTH=2)."""

STEP = 5


def test_result(check_result):
    check_result()


def test_speed(check_speed):
    check_speed()
