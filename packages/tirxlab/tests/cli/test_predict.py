"""./lab predict: a predicted time next to the published one, what bounds it, and bad input on one line."""

import json

import pytest

from tirxlab.cli.common import REFERENCE
from tirxlab.forecast import CHIPS

K = ["--kernels", str(REFERENCE)]


def test_a_step_is_predicted_beside_the_published_time(run):
    status, out, _ = run("predict", "4", "1024", *K)
    assert status == 0 and "predicted, not measured" in out and "published: 0.017 ms" in out
    assert "bound by: load latency" in out and "more stages" in out


def test_json_has_every_figure(run):
    status, out, _ = run("predict", "8", "1024", *K, "--json")
    said = json.loads(out)
    found = said["predicted"]
    assert status == 0 and said["published_ms"] == 0.014 and found["chip"] == "NVIDIA B200"
    assert found["ms"] > 0 and 0 < found["tensor_busy"] <= 1
    assert sum(found["spent"].values()) == pytest.approx(1)


def test_the_first_steps_are_not_put_beside_another_compilers_kernels(run):
    """The published kernels of steps 1 to 3 copied tiles element by element:
    their times mean nothing here.
    """
    _, out, _ = run("predict", "1", "--kernels", str(REFERENCE))
    assert "predicted, not measured" in out and "published" not in out
    status, out, _ = run("check", "1", "--kernels", str(REFERENCE))
    assert status == 0 and "predicted" not in out


def test_check_says_the_time_of_the_largest_published_size(run):
    status, out, _ = run("check", "4", "--size", "256", *K)
    assert status == 0 and "time on a B200 at 256: " in out and "not measured" in out


@pytest.mark.parametrize(
    "words, says",
    [
        (("4", "--chip", "h100"), " or ".join(CHIPS)),
        (("4", "1000"), "must be a multiple of 128"),
        (("4", "1024", "2048"), "a step takes one SIZE"),
        (("11",), "step 11 does not exist"),
        (("4", "many"), "is not a size"),
    ],
)
def test_bad_input_is_one_line(run, words, says):
    status, out, err = run("predict", *words, *K)
    assert status == 2 and says in err and len(err.strip().splitlines()) == 1 and not out
