"""Pseudonyms: the same id has the same code everywhere, nobody has it without the key, and no plain hash is made."""

import base64
import datetime as dt
import decimal
import hashlib
import hmac
import os
import stat
import time
import uuid

import numpy as np
import pyarrow as pa
import pytest

from discreet.anonymity.pseudonyms.brute_force import CandidateSpace, estimate_candidates, explain_brute_force
from discreet.anonymity.pseudonyms.keys import new_key, read_key, write_key
from discreet.anonymity.pseudonyms.pseudonymisation import describe_attacks_on_pseudonyms, pseudonymise

KEY = hashlib.sha256(b"a key for tests").digest()
OTHER = hashlib.sha256(b"another").digest()


def codes(values, key=KEY, kind=None):
    return pseudonymise(pa.table({"id": pa.array(values, kind)}), "id", key)["id"].to_pylist()


def by_hand(kind, text, key=KEY):
    digest = hmac.new(key, b"discreet pseudonym 1\0" + kind + b"\0" + text, hashlib.sha256).digest()
    return base64.b32encode(digest[:16]).decode().rstrip("=").lower()


def test_a_pseudonym_is_hmac_sha_256_of_the_value_in_base_32():
    assert codes(["5D12", "Zoë"]) == [by_hand(b"text", b"5D12"), by_hand(b"text", "Zoë".encode())]
    assert codes([17, -3]) == [by_hand(b"number", b"17"), by_hand(b"number", b"-3")]
    assert len(codes(["x"])[0]) == 26


def test_the_same_id_has_the_same_pseudonym_in_other_tables_under_other_names():
    trips = pa.table({"cab": ["5D12", "9Y99"], "fare": [3, 4]})
    fines = pa.table({"vehicle": ["9Y99", "5D12", "5D12"]})
    (a, b) = pseudonymise(trips, "cab", KEY)["cab"].to_pylist()
    assert pseudonymise(fines, "vehicle", KEY)["vehicle"].to_pylist() == [b, a, a]


def test_another_key_gives_other_pseudonyms():
    assert codes(["5D12"]) != codes(["5D12"], OTHER)


def test_a_number_is_one_id_however_it_is_stored_and_its_text_is_another():
    stored = [
        codes([17], kind=pa.int8()),
        codes([17], kind=pa.uint64()),
        codes([17.0], kind=pa.float32()),
        codes([decimal.Decimal("17.00")]),
    ]
    assert stored == [codes([17])] * 4
    assert codes(["17"]) != codes([17])
    assert codes([17.5]) == codes([decimal.Decimal("17.50")]) == [by_hand(b"number", b"17.5")]


def test_long_decimals_that_differ_in_the_last_digit_stay_apart():
    near = [decimal.Decimal(f"1234567890123456789012345678901234.{end}") for end in ("5671", "5672")]
    assert len(set(codes(near))) == 2
    assert len(set(codes([2**63, 2**63 + 1], kind=pa.uint64()))) == 2


def test_text_is_one_id_in_every_normal_form_and_with_every_storage():
    assert codes(["Zo\u00eb"]) == codes(["Zoe\u0308"])
    stored = [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
    assert [codes(["a", "b", "a"], kind=kind) for kind in stored] == [codes(["a", "b", "a"])] * 3
    assert len(set(codes(["ana", "Ana", " ana"]))) == 3


def test_ids_of_different_types_never_share_a_pseudonym():
    midnight = dt.datetime(1970, 1, 2)
    aware = dt.datetime(1970, 1, 2, tzinfo=dt.UTC)
    columns = [["1"], [1], [b"1"], [True], [dt.date(1970, 1, 2)], [midnight], [aware]]
    assert len({codes(values)[0] for values in columns}) == len(columns)


def test_times_are_one_id_in_every_unit_and_zone():
    here = dt.timezone(dt.timedelta(hours=2))
    noon = dt.datetime(2013, 1, 1, 12, tzinfo=dt.UTC)
    assert codes([noon], kind=pa.timestamp("ms", "UTC")) == codes(
        [noon.astimezone(here)], kind=pa.timestamp("ns", "CET")
    )
    assert codes([dt.datetime(9999, 1, 1)], kind=pa.timestamp("s")) == codes([dt.datetime(9999, 1, 1)])
    assert codes([dt.date(2013, 1, 1)], kind=pa.date64()) == codes([dt.date(2013, 1, 1)])


def test_uuids_and_bytes_have_pseudonyms():
    one = uuid.uuid5(uuid.NAMESPACE_DNS, "example.org")
    assert codes([one]) == codes([one.bytes]) == codes([one.bytes], kind=pa.binary(16))


@pytest.mark.parametrize("values", [[None, "a", None], [None, 3, 4], [float("nan"), 1.0, None], [None, None]])
def test_an_empty_id_stays_empty(values):
    empty = [value is None or value != value for value in values]  # noqa: PLR0124 - NaN
    assert [code is None for code in codes(values)] == empty


def test_an_empty_table_stays_empty():
    assert codes([], kind=pa.string()) == []


def test_ids_in_several_chunks_are_one_column():
    column = pa.chunked_array([["a", "b"], [], ["b", None]])
    found = pseudonymise(pa.table({"id": column}), "id", KEY)["id"].to_pylist()
    assert found == codes(["a", "b", "b", None])


@pytest.mark.parametrize("values", [[[1, 2]], [{"a": 1}], [dt.timedelta(1)], [dt.time(1)]])
def test_a_value_that_cannot_be_an_id_is_refused(values):
    with pytest.raises(TypeError, match=r"column.* has type |column: values of type .* Convert them to text"):
        codes(values)


def test_one_column_at_a_time():
    table = pa.table({"a": ["x"], "b": ["y"]})
    with pytest.raises(ValueError, match=r"^column: name one column\."):
        pseudonymise(table, ["a", "b"], KEY)
    with pytest.raises(ValueError, match=r"^column: column 'c' does not exist\. The table has: a, b\."):
        pseudonymise(table, "c", KEY)


@pytest.mark.parametrize(
    ("key", "kind", "said"),
    [
        ("correct horse battery staple", TypeError, "random bytes, not str"),
        (12345678901234567890, TypeError, "expected bytes, such as new_key"),
        (KEY[:15], ValueError, "15 bytes can be guessed. Use at least 16"),
        (b"", ValueError, "0 bytes can be guessed"),
        (b"correct horse battery staple", ValueError, "printable characters"),
        (KEY.hex().encode(), ValueError, "bytes.fromhex"),
        (bytes(32), ValueError, "follow a pattern"),
        (bytes(range(32)), ValueError, "follow a pattern"),
        (bytes(range(64, 0, -2)), ValueError, "follow a pattern"),
        (b"\0\1\2\3\4\5\6" * 5, ValueError, "follow a pattern"),
    ],
)
def test_a_key_that_can_be_guessed_is_refused(key, kind, said):
    with pytest.raises(kind, match=r"^key: ") as refusal:
        codes(["5D12"], key)
    assert said in str(refusal.value)


def test_new_keys_are_accepted():
    for _ in range(200):
        codes(["5D12"], new_key())


def test_plain_hashing_is_refused_with_the_number_of_candidates_for_this_column():
    table = pa.table({"medallion": ["5D12", "9Y99", None]})
    with pytest.raises(ValueError, match=r"26,000 candidates .* 9A99 .* in 0\.03 s\. Use a random key"):
        pseudonymise(table, "medallion", None)


@pytest.mark.parametrize(
    ("values", "count", "form"),
    [
        (["5D12", "9Y99"], 26_000, "9A99"),
        (["5D12", "9Y99", "SBV123"], 26_000 + 26**3 * 1000, "and 1 other format"),
        ([17, 4021], 10_000, "integers of up to 4 digits"),
        ([-17, 3], 100, "2 digits"),
        ([dt.date(2000, 1, 1), dt.date(2000, 12, 31)], 366, "dates"),
        ([True, False], 2, "booleans"),
        ([None, "a"], 26, "of the form a "),
        ([None], 1, "empty column"),
        (["a-b.C"], 26**3, "a-a.A"),
    ],
)
def test_candidates_are_counted_from_the_formats_seen(values, count, form):
    found = estimate_candidates(pa.array(values))
    assert found.count == count
    assert form in found.description


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (2, "in 0.01 s"),
        (1_500_000, "in 2 s"),
        (10**9, "in 17 minutes"),
        (10**10, "in 3 hours"),
        (10**12, "in 12 days"),
        (10**15, "in 32 years"),
        (2**81, "too many to enumerate"),
    ],
)
def test_the_time_to_try_all_candidates_is_stated_in_words(count, said):
    assert said in explain_brute_force(CandidateSpace("ids", count))


def test_a_huge_text_is_a_valid_id_and_is_not_quoted():
    huge = "x" * 1_000_000
    assert codes([huge]) == [by_hand(b"text", huge.encode())]
    assert len(estimate_candidates(pa.array([huge])).description) < 100


def test_the_note_names_the_remaining_attack():
    table = pa.table({"id": ["5D12"], "place": ["Main Street"], "fare": [9]})
    note = pseudonymise(table, "id", KEY).schema.metadata[b"not_protected"].decode()
    assert note == describe_attacks_on_pseudonyms(["id"], ["place", "fare"])
    assert "linkage attack" in note
    assert "'id' can be inferred from place, fare)" in note
    assert "frequency attack" in describe_attacks_on_pseudonyms(["id"], [])
    assert "a pseudonym of 'id' or 'boss' can be" in describe_attacks_on_pseudonyms(["id", "boss"], ["age"])


def test_pandas_comes_back_as_pandas_with_a_note_and_without_its_index():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"id": ["a", None, "a"], "mixed": [1, "x", None], "n": [1.5, 2, 3]}, index=[7, 8, 7])
    found = pseudonymise(table, "id", KEY)
    assert isinstance(found, pd.DataFrame)
    assert found.index.equals(pd.RangeIndex(3))  # for the other may hold the ids themselves
    assert found["id"].iloc[0] == found["id"].iloc[2] == codes(["a"])[0]
    assert pd.isna(found["id"].iloc[1])
    pd.testing.assert_frame_equal(found[["mixed", "n"]], table[["mixed", "n"]].reset_index(drop=True))
    assert found.attrs["not_protected"].startswith("Not protected against: ")
    assert table["id"].iloc[0] == "a"
    categories = pseudonymise(table.astype({"id": "category"}), "id", KEY)
    assert categories["id"].iloc[0] == found["id"].iloc[0]


def test_ids_of_pandas_with_gaps_are_the_ids_without():
    pd = pytest.importorskip("pandas")
    gaps = pseudonymise(pd.DataFrame({"id": [17, None]}), "id", KEY)  # floats, because of the gap
    assert gaps["id"].iloc[0] == codes([17])[0]


def test_polars_comes_back_as_polars():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"id": ["a", None, "b"], "n": [1, 2, 3]})
    found = pseudonymise(table, "id", KEY)
    assert isinstance(found, pl.DataFrame)
    assert found["id"].to_list() == codes(["a", None, "b"])
    assert found["n"].to_list() == [1, 2, 3]
    for kind in (pl.Categorical, pl.Enum(["a", "b"])):
        assert pseudonymise(table.cast({"id": kind}), "id", KEY)["id"].to_list() == found["id"].to_list()


@pytest.mark.long
def test_a_quarter_of_a_million_ids_take_a_few_seconds():
    ids = pa.table({"id": np.arange(250_000)})
    began = time.process_time()  # its own work, however busy the machine is
    found = pseudonymise(ids, "id", KEY)
    assert time.process_time() - began < 10  # 0.8 s on a quiet core
    assert len(set(found["id"].to_pylist())) == 250_000


def test_a_key_file_is_for_its_owner_alone(tmp_path):
    file = tmp_path / "taxi.key"
    before = os.umask(0)
    try:
        key = write_key(file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_key(file) == read_key(str(file)) == key
    assert len(key) == 32


def test_a_key_file_is_never_overwritten(tmp_path):
    file = tmp_path / "taxi.key"
    key = write_key(file)
    with pytest.raises(ValueError, match=r"^path: .* already exists"):
        write_key(file)
    assert read_key(file) == key
    (tmp_path / "link.key").symlink_to(tmp_path / "nowhere.key")
    with pytest.raises(ValueError, match=r"^path: .* already exists"):
        write_key(tmp_path / "link.key")
    assert not (tmp_path / "nowhere.key").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o660])
def test_a_key_that_others_may_open_is_refused(tmp_path, mode):
    file = tmp_path / "taxi.key"
    write_key(file)
    file.chmod(mode)
    with pytest.raises(ValueError, match=r"^path: .* accessible to other users .* chmod 600 "):
        read_key(file)


@pytest.mark.parametrize("text", ["", "no key", "ff" * 15, "00" * 32, "é" * 40, "ab" * 3000])
def test_a_file_that_is_no_key_is_refused(tmp_path, text):
    file = tmp_path / "taxi.key"
    file.touch(0o600)
    file.write_text(text)
    with pytest.raises(ValueError, match=r"^path: .* is not a valid key \("):
        read_key(file)


def test_a_path_without_a_key_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"^path: .*taxi.key cannot be read .* Name a file with a key"):
        read_key(tmp_path / "taxi.key")
    with pytest.raises(ValueError, match=r"^path: folder .*nowhere does not exist\. .*mkdir -p -m 700 .*nowhere$"):
        write_key(tmp_path / "nowhere" / "taxi.key")
    with pytest.raises(ValueError, match=r"^path: .* cannot be read"):
        read_key(tmp_path)


def test_a_key_of_another_user_is_refused(tmp_path, monkeypatch):
    write_key(tmp_path / "k")
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(ValueError, match="belongs to another user, who knows the key"):
        read_key(tmp_path / "k")
