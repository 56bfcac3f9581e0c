"""x"""


def command() -> None:
    pass
