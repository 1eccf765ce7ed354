"""Files are whole or not there."""

import os

import pytest

from geomctrl.files import whole, write_text


def test_a_failure_leaves_what_was_there(tmp_path):
    path = write_text(tmp_path / "deep" / "er" / "file.txt", "first")
    with pytest.raises(TypeError), whole(path) as file:
        file.writelines([b"half of the sec", None])
    assert path.read_text() == "first"
    assert os.listdir(path.parent) == ["file.txt"]


def test_a_file_is_seen_only_when_it_is_whole(tmp_path):
    path = tmp_path / "file.bin"
    with whole(path) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"


def test_others_may_read_it(tmp_path):
    ordinary = tmp_path / "ordinary"
    ordinary.write_text("")
    assert write_text(tmp_path / "ours", "").stat().st_mode == ordinary.stat().st_mode
