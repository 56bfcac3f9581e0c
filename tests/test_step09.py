"""Step 9: 2-CTA cluster."""

STEP = 9


def test_result(check_result):
    check_result()


def test_speed(check_speed):
    check_speed()
