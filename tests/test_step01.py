"""Step 1: Single-tile synchronous GEMM."""

STEP = 1


def test_result(check_result):
    check_result()


def test_speed(check_speed):
    check_speed()
