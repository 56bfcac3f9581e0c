"""Artifacts: what is saved can be loaded, and a corrupt file is refused in one line."""

import dataclasses
import io
import json
import subprocess
import sys
import zipfile

import pytest

from tirxlab.artifact import (
    Artifact,
    ArtifactError,
    BufferInfo,
    BufferParam,
    ScalarParam,
    SharedName,
    TensorMapParam,
)

PTX = ".version 9.0\n.target sm_100a\n.visible .entry demo(\n)\n{\nret;\n}\n"
MAP = TensorMapParam("A", 16, "float16", (64, 128), (128,), (64, 8), (1, 1), 0, 128, 2, "nan")


def artifact(**changes):
    plain = {
        "arch": "sm_100a",
        "entry": "demo",
        "cuda": "// µ\n",
        "ptx": PTX,
        "cubin": b"\x7fELF\0\xff",
        "grid": (4, 2, 1),
        "block": (128, 1, 1),
        "cluster": (2, 1, 1),
        "shared_bytes": 33792,
        "params": (MAP, BufferParam("D", 8), ScalarParam("n", "int32", -3)),
        "buffers": (BufferInfo("A", (128, 64), "float16", "in"), BufferInfo("D", (8,), "float32", "inout")),
        "names": (SharedName("bar", "uint64", 8, 16, (2,)), SharedName("bar", "uint64", 8, 8, (1,))),
        "source": {"file": "k.py", "text": "def k(): ..."},
        "registers": 80,
        "spills": 8,
        "stack": 16,
        "tools": {"tvm": "0.26.0"},
    }
    return Artifact(**{**plain, **changes})


def test_round_trip(tmp_path):
    first = artifact()
    first.save(tmp_path / "a.lab")
    assert Artifact.load(tmp_path / "a.lab") == first
    assert [p.name for p in tmp_path.iterdir()] == ["a.lab"]
    assert [b.name for b in first.outputs] == ["D"]


def test_equal_artifacts_are_equal_bytes():
    assert artifact().to_bytes() == artifact().to_bytes()
    assert artifact().to_bytes() != artifact(registers=81).to_bytes()


def test_plain_data_only():
    with zipfile.ZipFile(io.BytesIO(artifact().to_bytes())) as archive:
        assert archive.namelist() == ["artifact.json", "kernel.cu", "kernel.ptx", "kernel.cubin"]
        assert json.loads(archive.read("artifact.json"))["params"][0]["dims"] == [64, 128]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arch": "gfx942"}, "arch"),
        ({"entry": "other"}, "no entry 'other'"),
        ({"entry": "dem"}, "no entry 'dem'"),
        ({"grid": (4, 0, 1)}, "grid"),
        ({"block": (128,)}, "block"),
        ({"grid": (3, 2, 1)}, "not a multiple of cluster"),
        ({"grid": (0, 1, 1)}, "has no CTA: an extent of cta_id"),
        ({"shared_bytes": -1}, "sizes"),
        ({"registers": True}, "sizes"),
        ({"cubin": "text"}, "cubin"),
        ({"params": (BufferParam("Z"),)}, "unknown buffer"),
        ({"params": (dataclasses.replace(MAP, box=(64,)),)}, "rank 2"),
        ({"params": (dataclasses.replace(MAP, strides=()),)}, "rank 2"),
        ({"params": (dataclasses.replace(MAP, swizzle=16),)}, "swizzle 16"),
        ({"params": (dataclasses.replace(MAP, fill="one"),)}, "fill 'one'"),
        ({"buffers": (BufferInfo("A", (1,), "float16", "in"),) * 2}, "share a name"),
        ({"buffers": (BufferInfo("A", (1,), "float16", "both"),), "params": ()}, "role 'both'"),
        ({"names": (SharedName("x", "uint8", -4, 4, (4,)),)}, "offset -4"),
        ({"source": {"path": "/home/me"}}, "unknown keys"),
        ({"format": 2}, "format 2"),
    ],
)
def test_unsound_artifacts_are_refused(changes, words):
    with pytest.raises(ArtifactError, match=words) as caught:
        artifact(**changes)
    assert "\n" not in str(caught.value)


def rewrite(data: bytes, **replaced) -> bytes:
    """The zip with members replaced, or left out if the value is None."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = replaced.get(name.replace(".", "_"), old.read(name))
            if content is not None:
                new.writestr(name, content)
    return out.getvalue()


def changed_meta(**changes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(artifact().to_bytes())) as archive:
        meta = json.loads(archive.read("artifact.json"))
    return rewrite(artifact().to_bytes(), artifact_json=json.dumps({**meta, **changes}))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"no zip", "not an artifact"),
        (artifact().to_bytes()[:-40], "not an artifact"),
        (rewrite(artifact().to_bytes(), kernel_ptx=None), "kernel.ptx"),
        (rewrite(artifact().to_bytes(), artifact_json="{"), "not an artifact"),
        (rewrite(artifact().to_bytes(), artifact_json="[]"), "format"),
        (rewrite(artifact().to_bytes(), kernel_cu=b"\xff"), "not an artifact"),
        (changed_meta(format=99), "build the kernel again"),
        (changed_meta(surprise=1), "surprise"),
        (changed_meta(params=[{"kind": "magic"}]), "magic"),
        (changed_meta(params=[{"kind": "buffer"}]), "buffer"),
        (changed_meta(grid=[1.5, 1, 1]), "grid"),
    ],
)
def test_unsound_files_are_refused(tmp_path, data, words):
    path = tmp_path / "bad.lab"
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match=words) as caught:
        Artifact.load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_missing_file(tmp_path):
    with pytest.raises(ArtifactError, match="no such file"):
        Artifact.load(tmp_path / "none.lab")


def test_failed_save_leaves_nothing(tmp_path):
    (tmp_path / "folder.lab").mkdir()
    with pytest.raises(OSError):
        artifact().save(tmp_path / "folder.lab")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.lab"]


def test_needs_no_tvm(tmp_path):
    artifact().save(tmp_path / "a.lab")
    code = (
        "import sys; sys.modules['tvm'] = None\n"
        "from tirxlab.artifact import Artifact; import tirxlab.devices, utils\n"
        f"print(Artifact.load({str(tmp_path / 'a.lab')!r}).entry)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "demo\n", done.stderr
