"""A release is verified byte by byte, and nothing outside its folder is read."""

import json
import os

import pytest

from discreet import PolicyError
from discreet.publish import verify, write_manifest
from discreet.publish.manifest import LedgerPoint, _manifest_bytes, file_digests, read_manifest


@pytest.fixture
def release(tmp_path):
    folder = tmp_path / "release"
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "wards.csv").write_bytes(b"ward,n\nA,10\n")
    (folder / "report.html").write_bytes(b"<p>")
    write_manifest(folder, policy_text="[data]", plan_text="[release]", ledger=LedgerPoint(3, "ab" * 32))
    return folder


def change_manifest(release, **changes):
    """Write a manifest of other content, with the digest that belongs to it."""
    path = release / "manifest.json"
    content = json.loads(path.read_text()) | changes
    del content["manifest"]
    path.write_bytes(_manifest_bytes(content))


def test_an_unchanged_release_has_no_problem(release):
    assert verify(release) == []
    assert set(read_manifest(release)["files"]) == {"tables/wards.csv", "report.html"}


@pytest.mark.parametrize("name", ["tables/wards.csv", "report.html", "manifest.json"])
def test_every_changed_byte_of_a_file_is_found_with_its_name(release, name):
    path = release / name
    content = path.read_bytes()
    for place, byte in enumerate(content):
        path.write_bytes(content[:place] + bytes([byte ^ 1 << place % 8]) + content[place + 1 :])
        (problem,) = verify(release)
        assert problem.startswith(f"{name}: ")
    path.write_bytes(content)
    assert verify(release) == []


def test_a_manifest_of_the_same_content_in_another_form_is_refused(release):
    path = release / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert verify(release) == ["manifest.json: changed since the release"]


def test_missing_and_added_files_are_named(release):
    (release / "report.html").unlink()
    (release / "tables" / "more.csv").write_text("x")
    assert verify(release) == ["report.html: missing", "tables/more.csv: added after the release"]


def test_a_symbolic_link_is_refused_even_to_the_same_bytes(release, tmp_path):
    copy = tmp_path / "copy.csv"
    copy.write_bytes((release / "tables" / "wards.csv").read_bytes())
    (release / "tables" / "wards.csv").unlink()
    (release / "tables" / "wards.csv").symlink_to(copy)
    assert verify(release) == ["tables/wards.csv: a symbolic link, which a release must not contain"]


def test_a_linked_folder_is_refused_and_not_entered(release, tmp_path):
    (release / "tables").rename(tmp_path / "elsewhere")
    (release / "tables").symlink_to(tmp_path / "elsewhere")
    assert verify(release) == [
        "tables/wards.csv: missing",
        "tables: a symbolic link, which a release must not contain",
    ]


def test_a_linked_manifest_is_refused(release, tmp_path):
    (release / "manifest.json").rename(tmp_path / "manifest.json")
    (release / "manifest.json").symlink_to(tmp_path / "manifest.json")
    (problem,) = verify(release)
    assert problem.startswith("manifest.json: cannot be read")


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "tables/../../secret", "..", "a\\b", "", "a\0b"])
def test_a_path_that_leaves_the_folder_is_refused_and_not_read(release, tmp_path, name):
    secret = tmp_path / "secret"
    secret.write_text("x")
    os.utime(secret, (0, 0))
    files = read_manifest(release)["files"] | {name: "ab" * 32}
    change_manifest(release, files=files)
    (problem,) = verify(release)
    assert "leaves the folder of the release" in problem
    assert secret.stat().st_atime == 0


@pytest.mark.parametrize("name", ["./report.html", "tables//wards.csv", "."])
def test_a_path_in_another_form_is_refused(release, name):
    change_manifest(release, files=read_manifest(release)["files"] | {name: "ab" * 32})
    assert any("not a plain path" in problem for problem in verify(release))


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 1},
        {"files": []},
        {"files": {"a": "x"}},
        {"policy": None},
        {"more": 1},
        {"ledger": {"row": 1}},
        {"plan": 7},
    ],
    ids=str,
)
def test_a_malformed_manifest_is_refused(release, changes):
    change_manifest(release, **changes)
    assert verify(release) == ["manifest.json: malformed, or of another version"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"format":1,"format":1}'], ids=range(6)
)
def test_a_manifest_that_is_no_json_is_refused(release, content):
    (release / "manifest.json").write_bytes(content)
    assert verify(release) == ["manifest.json: malformed, or of another version"]


def test_a_name_that_occurs_twice_is_refused(release):
    path = release / "manifest.json"
    path.write_text(path.read_text().replace('"files": {', f'"files": {{"report.html": "{"ab" * 32}",'))
    assert verify(release) == ["manifest.json: malformed, or of another version"]


def test_a_folder_without_a_manifest_is_no_release(tmp_path):
    assert verify(tmp_path) == ["manifest.json: missing, so this is not a release"]


def test_a_pipe_in_a_release_is_refused_and_does_not_block(release):
    os.mkfifo(release / "pipe")
    assert verify(release) == ["pipe: not a regular file, which a release must not contain"]
    (release / "pipe").unlink()
    (release / "manifest.json").unlink()
    os.mkfifo(release / "manifest.json")
    (problem,) = verify(release)
    assert problem.startswith("manifest.json: cannot be read")


def test_a_manifest_is_not_written_over_a_link(release):
    (release / "link").symlink_to("report.html")
    with pytest.raises(PolicyError, match="link: a symbolic link"):
        file_digests(release)


def test_the_manifest_names_no_data(release):
    names = set(json.loads((release / "manifest.json").read_text()))
    assert names == {"format", "files", "policy", "plan", "ledger", "manifest"}
