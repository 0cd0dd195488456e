"""What is known of an index holds only for the very same index."""

from pathlib import Path

from agents.workspaces.indexes import is_equal, note_equal

SHA = "1" * 40


def test_an_index_is_known_by_its_checksum(tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.write_bytes(b"DIRC one" + b"\x01" * 20)
    note_equal(index, SHA)
    assert is_equal(index, SHA)
    assert not is_equal(index, "2" * 40)
    index.write_bytes(b"DIRC two" + b"\x02" * 20)
    assert not is_equal(index, SHA)


def test_an_index_without_a_checksum_is_never_known(tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.write_bytes(b"DIRC one" + bytes(20))
    note_equal(index, SHA)
    index.write_bytes(b"DIRC two" + bytes(20))
    assert not is_equal(index, SHA)
