"""Random bytes: the cipher is the one it says it is, and nobody reads a byte that somebody else has."""

import os
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from discreet.kernel.noise import keystream
from discreet.kernel.noise.keystream import Keystream, process_token, random_integer, random_words, thread_keystream
from discreet.kernel.noise.sampler import POOL_SIZE, Sampler

HERE = Path(__file__).parent


def urandom_of(monkeypatch, *answers):
    """Let the operating system answer with these; return what it was asked."""
    asked, left = [], list(answers)

    def urandom(count):
        asked.append(count)
        out = left.pop(0)
        assert len(out) == count
        return out

    monkeypatch.setattr(keystream.os, "urandom", urandom)
    return asked


def counter_mode(key, start, count):
    """Return count bytes of AES in counter mode, from single blocks."""
    encryptor = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    counter, out = int.from_bytes(start), b""
    while len(out) < count:
        out += encryptor.update((counter % (1 << 128)).to_bytes(16))
        counter += 1
    return out[:count]


def test_the_stream_is_aes_in_counter_mode(monkeypatch):
    # NIST SP 800-38A, F.5.5: the stream is its plaintext xor its ciphertext.
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    start = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    plain = bytes.fromhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    )
    cipher = bytes.fromhex(
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
    )
    asked = urandom_of(monkeypatch, key, start)
    found = Keystream().bytes(64)
    assert asked == [32, 16]
    assert type(found) is bytearray
    assert bytes(a ^ b for a, b in zip(plain, found, strict=True)) == cipher
    assert found == counter_mode(key, start, 64)


@pytest.mark.parametrize("start", [bytes(16), b"\xff" * 16, bytes(range(16))])
def test_requests_of_any_size_follow_each_other_without_gap_or_overlap(monkeypatch, start):
    key = bytes(range(32))
    urandom_of(monkeypatch, key, start)
    source = Keystream()
    sizes = [1, 15, 16, 17, 2, 0, 31, 65535, 65536, 65537, 200_000, 3]
    parts = [source.bytes(size) for size in sizes]
    assert [len(part) for part in parts] == sizes
    assert b"".join(parts) == counter_mode(key, start, sum(sizes))


def test_a_key_is_used_for_a_limited_number_of_bytes(monkeypatch):
    monkeypatch.setattr(keystream, "REKEY_AFTER", 100)
    keys = [(os.urandom(32), os.urandom(16)) for _ in range(12)]
    asked = urandom_of(monkeypatch, *(part for pair in keys for part in pair))
    source = Keystream()
    found = [source.bytes(size) for size in (60, 40, 1, 98, 2, 100, 250, 1)]
    used = [counter_mode(*key, 300) for key in keys]
    expected = [used[0][:60], used[0][60:100], used[1][:1], used[1][1:99], used[2][:2], used[3][:100], used[4][:250]]
    assert found == [*expected, used[5][:1]]
    assert asked == [32, 16] * 6


def test_every_key_comes_from_the_operating_system():
    assert 2**20 <= keystream.REKEY_AFTER <= 2**32
    assert len({bytes(Keystream().bytes(32)) for _ in range(200)}) == 200


def test_nothing_is_handed_out_when_the_operating_system_has_no_randomness(monkeypatch):
    def fails(count):
        raise OSError

    monkeypatch.setattr(keystream.os, "urandom", fails)
    source = Keystream()
    for _ in range(2):
        with pytest.raises(OSError):
            source.bytes(16)


def test_words_and_integers_use_every_bit():
    class Ones:
        def bytes(self, count):
            return bytearray(b"\xff" * count)

    for dtype in (np.uint16, np.uint32, np.uint64):
        found = random_words(Ones(), 5, dtype)
        assert found.dtype == dtype
        assert found.tolist() == [np.iinfo(dtype).max] * 5
    assert random_integer(Ones(), 128) == (1 << 128) - 1
    assert random_integer(Ones(), 8) == 255


def test_every_byte_is_equally_frequent():
    counts = np.bincount(np.frombuffer(thread_keystream().bytes(1 << 22), np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-13


WINDOW = 16


def windows(data):
    return {bytes(data[start : start + WINDOW]) for start in range(len(data) - WINDOW + 1)}


def test_threads_share_neither_a_stream_nor_single_draws(monkeypatch):
    count, found, noises, streams, made = 8, {}, {}, [thread_keystream()], []
    barrier = threading.Barrier(count)
    sampler = Sampler(Fraction(1, 10**18), Fraction(0))
    plain = sampler.draw

    def draw(asked):
        made.append(threading.get_ident())
        return plain(asked)

    monkeypatch.setattr(sampler, "draw", draw)
    sampler.draw_one()

    def work(name):
        barrier.wait()
        streams.append(thread_keystream())
        found[name] = b"".join(thread_keystream().bytes(100) for _ in range(20))
        noises[name] = [sampler.draw_one().item() for _ in range(POOL_SIZE + 1)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(source) for source in streams}) == count + 1
    assert sorted(made) == sorted([threading.get_ident(), *(thread.ident for thread in threads for _ in range(2))])
    sets = [windows(data) for data in found.values()]
    assert len(set.union(*sets)) == sum(map(len, sets)) == count * (2000 - WINDOW + 1)
    everything = [noise for listed in noises.values() for noise in listed]
    assert len(set(everything)) == len(everything)


def run(script):
    # Native threads of numpy would make every fork a fork of a threaded process.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(HERE / script)], capture_output=True, text=True, timeout=240, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_threads_and_forks_never_share_a_stream():
    told = run("noise_forks.py")
    names = [line[0] for line in told]
    # A parent before and after, children, grandchildren, threads, workers, forks that Python was not told of,
    # children whose process number seems the old one.
    assert len(set(names)) == len(names)
    for kind in ("parent", "child", "grandchild", "thread", "worker", "untold", "namesake"):
        assert sum(name.startswith(kind) for name in names) >= 2, kind
    streams = [windows(bytes.fromhex(line[1])) for line in told]
    assert all(len(found) == 512 - WINDOW + 1 for found in streams)
    assert len(set.union(*streams)) == sum(map(len, streams))
    noises = [line[2].split(",") for line in told]
    everything = [noise for listed in noises for noise in listed]
    assert len(everything) == len(told) * 40
    assert len(set(everything)) == len(everything)


def test_life_is_one_object_in_a_process():
    assert process_token() is process_token()
    assert thread_keystream() is thread_keystream()


def test_a_child_of_a_fork_that_bypassed_the_handlers_has_a_stream_of_its_own(monkeypatch):
    """A fork in C calls no handler of Python: only the number of the process is another."""
    token, stream = keystream.process_token(), keystream.thread_keystream()
    assert keystream.process_token() is token
    monkeypatch.setattr(keystream.os, "getpid", lambda: -1)
    assert keystream.process_token() is not token
    assert keystream.thread_keystream() is not stream


def test_a_new_stream_returns_no_bytes_if_none_are_wanted():
    assert Keystream().bytes(0) == b""


def test_the_child_of_a_fork_has_other_streams_before_it_asks_for_one():
    assert process_token() is keystream._thread_streams
    code = (
        "import os; from discreet.kernel.noise import keystream as k; before = k._thread_streams; child = os.fork(); "
        "os._exit(k._thread_streams is before) if child == 0 else os._exit(os.waitpid(child, 0)[1] != 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
