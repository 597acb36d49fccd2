"""The text index as Python sees it: what is found by what, what is refused, what survives."""

import os
import threading
from pathlib import Path

import numpy as np
import pyroaring
import pytest
from kektor_native import Bitmap, CorruptFile, TextIndex, analyze, languages, query_terms


def index_of(*texts: str, language: str = "english") -> TextIndex:
    index = TextIndex(language=language)
    for slot, text in enumerate(texts):
        index.add(slot, [text], lsn=slot + 1)
    return index


def found(index: TextIndex, query: str, k: int = 10) -> list[int]:
    slots, scores = index.search(query, k)
    assert slots.dtype == np.uint32
    assert scores.dtype == np.float32
    return slots.tolist()  # type: ignore[no-any-return]


def save(index: TextIndex, folder: Path, lsn: int = 0) -> None:
    folder.mkdir()
    for chunk in index.freeze(lsn):
        index.write(chunk, str(folder / chunk.name))
    index.release(True)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("The cats are sleeping on the sofa.", "sleep"),
        ("Il gatto dorme sull'amaca della nonna.", "amaca"),
        ("Die Katze schläft auf dem Sofa.", "schläft"),
        ("Кошка спит на диване.", "диване"),
        ("القطة تنام على الأريكة", "القطة"),
        ("बिल्ली सोफ़े पर सो रही है", "बिल्ली"),
        ("猫在沙发上睡觉", "沙发"),
        ("猫はソファで寝ている", "ソファ"),
        ("고양이가 소파에서 잔다", "고양이"),
        ("แมวนอนบนโซฟา", "โซฟา"),
        ("החתול ישן על הספה", "החתול"),
        ("A cat 🐱 sleeps", "🐱"),
        ("Cafe\u0301 au lait", "café"),
        ("user prefers getUserName over fetch", "user name"),
    ],
)
def test_a_text_is_found_by_a_word_of_it(text: str, word: str) -> None:
    index = index_of("something else altogether", text, "别的东西 다른 것 другое")
    assert found(index, word) == [1]
    assert found(index, "zebra 犀牛 코뿔소") == []


@pytest.mark.parametrize(
    ("stored", "other"),
    [
        ("TKT-100", "TKT-1000"),
        ("/etc/app/conf", "/etc/app/conf.bak"),
        ("alice@acme.io", "alice.smith@acme.io"),
        ("v1.2.3", "v1.2.30"),
        ("order_2024_001", "order_2024_0010"),
        ("550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440001"),
        ("https://acme.io/a?b=1", "https://acme.io/a?b=12"),
        ("port 8080", "port 8081"),
    ],
)
def test_an_identifier_matches_itself_and_not_what_begins_like_it(stored: str, other: str) -> None:
    index = index_of(f"about {stored}, noted", f"about {other}, noted")
    assert found(index, stored.split()[-1]) == [0]
    assert found(index, other.split()[-1]) == [1]


def test_spellings_of_one_telephone_number_match() -> None:
    index = index_of("call +1 (555) 010-2233", "call 5550102234")
    for spelling in ("5550102233", "+1 555 010 2233", "(555) 010-2233", "+15550102233"):
        assert found(index, spelling)[0] == 0


def test_function_words_count_only_when_there_is_nothing_else() -> None:
    index = index_of("to be or not to be", "the question is where to look", "who was that")
    assert found(index, "who") == [2]
    assert found(index, "to be or not to be")[0] == 0
    assert found(index, "where is the question") == [1]
    assert query_terms("where is the question") == ["question"]
    assert index.query_terms("Who?") == ["who"]


def test_a_query_is_data_and_never_syntax() -> None:
    index = index_of('say "hello" AND (goodbye OR *)', "other")
    for query in ('"hello', "hello*)", "text:hello AND NOT", "(((", "\0", "-hello", "hello~2^9"):
        assert found(index, query) in ([0], [])
    assert found(index, '"hello') == [0]
    assert found(index, "") == []


def test_analysis_is_the_same_everywhere() -> None:
    text = "Running TKT-100 über 東京 by alice.smith@acme.io"
    assert index_of(text).analyze(text) == analyze(text)
    assert analyze(text, "english") == analyze(text)
    assert analyze(text, "german") != analyze(text)
    assert set(index_of().query_terms(text)) <= set(analyze(text))


def test_every_language_works() -> None:
    assert len(languages()) == 18
    for language in languages():
        index = index_of("alpha beta", "gamma", language=language)
        assert index.language == language
        assert found(index, "gamma") == [1]


def test_long_texts_and_long_tokens_are_whole() -> None:
    long = "x" * (1 << 20)
    index = index_of("word " * 200_000 + "needle", long, long + "y")
    assert found(index, "needle") == [0]
    assert found(index, long) == [1]
    assert found(index, long + "y") == [2]
    assert index.stats()["postings"] == 4


def test_fields_weigh_as_they_are_told() -> None:
    index = TextIndex(fields=[("title", 3.0), ("text", 1.0)])
    index.add(1, ["other", "apple"], lsn=1)
    index.add(2, ["apple", "other"], lsn=2)
    assert found(index, "apple") == [2, 1]


def test_equal_scores_come_by_slot_and_only_k_of_them() -> None:
    index = TextIndex()
    for slot in (9, 3, 7, 1):
        index.add(slot, ["same words"], lsn=1)
    assert found(index, "same") == [1, 3, 7, 9]
    assert found(index, "same", 2) == [1, 3]
    assert found(index, "same", 0) == []


def test_a_filter_lets_through_what_it_holds() -> None:
    index = TextIndex()
    for slot in range(3000):
        index.add(slot, ["common" + (" rare" if slot % 100 == 0 else "")], lsn=1)
    for allowed in ([5], list(range(0, 3000, 3)), [], [2, 99_999]):
        bitmap = Bitmap(pyroaring.BitMap(allowed).serialize())
        slots, _ = index.search("common rare", 10_000, filter=bitmap)
        assert sorted(slots.tolist()) == [slot for slot in allowed if slot < 3000]


def test_misuse_is_a_value_error_and_changes_nothing() -> None:
    for wrong, match in [
        ({"language": "klingon"}, "klingon.*english"),
        ({"k1": -1}, "k1"),
        ({"b": 1.5}, "b must"),
        ({"fields": []}, "empty"),
        ({"fields": [("a", 0.0)]}, "weight"),
        ({"fields": [("a", float("nan"))]}, "weight"),
        ({"fields": [("a", 1.0), ("a", 1.0)]}, "twice"),
    ]:
        with pytest.raises(ValueError, match=match):
            TextIndex(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="klingon"):
        analyze("x", "klingon")
    index = index_of("one")
    with pytest.raises(ValueError, match="slot 0 is taken"):
        index.add(0, ["again"], lsn=9)
    with pytest.raises(ValueError, match="2 texts for the 1 fields"):
        index.add(1, ["a", "b"], lsn=9)
    with pytest.raises(ValueError, match="reserved"):
        index.add(2**32 - 1, ["a"], lsn=9)
    with pytest.raises(TypeError):
        index.add(1, [b"bytes"], lsn=9)  # type: ignore[list-item]
    assert not index.remove(5, lsn=2)
    assert (len(index), index.applied_lsn, found(index, "again a")) == (1, 2, [])


def test_removed_documents_leave_every_statistic() -> None:
    index = index_of("apple pear", "apple", "plum")
    assert index.document_frequency("appl") == 2
    assert 1 in index
    assert index.remove(1, lsn=4)
    assert 1 not in index
    assert (len(index), index.document_frequency("appl"), found(index, "apple")) == (2, 1, [0])
    other = TextIndex()
    other.add(0, ["apple pear"], lsn=1)
    other.add(2, ["plum"], lsn=2)
    np.testing.assert_array_equal(index.search("apple plum", 5)[1], other.search("apple plum", 5)[1])


def test_what_is_written_opens_again_and_only_what_changed_is_dirty(tmp_path: Path) -> None:
    index = index_of(*(f"document {slot} about topic{slot % 7}" for slot in range(500)))
    save(index, tmp_path / "1", lsn=500)
    chunks = index.freeze(500)
    assert [chunk.name for chunk in chunks if chunk.dirty] == []
    index.release(False)
    index.add(1000, ["fresh topic3"], lsn=501)
    index.remove(3, lsn=502)
    assert sorted(chunk.dirty for chunk in index.freeze(502)) == [False, True, True]
    index.release(False)
    opened = TextIndex.open(str(tmp_path / "1"))
    assert (len(opened), opened.applied_lsn, opened.language, opened.validate()) == (500, 500, "english", [])
    assert found(opened, "topic3", 3) == [3, 10, 17]
    assert found(index, "topic3", 1000).count(1000) == 1
    assert 3 not in found(index, "topic3", 1000)


def test_the_index_changes_on_while_it_is_written(tmp_path: Path) -> None:
    index = index_of("apple one", "apple two", "apple three")
    chunks = index.freeze(3)
    index.add(7, ["apple seven"], lsn=4)
    index.remove(1, lsn=5)
    index.add(1, ["apple again"], lsn=6)
    index.remove(2, lsn=7)
    for chunk in chunks:
        index.write(chunk, str(tmp_path / chunk.name))
    index.add(8, ["apple eight"], lsn=8)
    index.release(True)
    index.remove(0, lsn=9)
    assert sorted(found(index, "apple")) == [1, 7, 8]
    assert found(index, "again") == [1]
    assert found(index, "two") == []
    assert index.validate() == []
    opened = TextIndex.open(str(tmp_path))
    assert sorted(found(opened, "apple")) == [0, 1, 2]
    assert found(opened, "two") == [1]


def test_erased_terms_are_gone_from_the_next_checkpoint(tmp_path: Path) -> None:
    texts = [f"common words number{slot}" for slot in range(200)]
    index = index_of(*texts[:100], "common xyzzy42secret", *texts[100:])
    save(index, tmp_path / "1")
    index.remove(100, lsn=300)
    save(index, tmp_path / "2")
    index.add(100, ["common xyzzy43secret"], lsn=301)
    save(index, tmp_path / "3")
    index.remove(100, lsn=302, erase=True)
    save(index, tmp_path / "4")

    def stored(folder: str, token: bytes) -> bool:
        return any(token in path.read_bytes() for path in (tmp_path / folder).iterdir())

    assert stored("1", b"xyzzy42secret")
    assert stored("3", b"xyzzy43secret")
    assert not stored("4", b"xyzzy43secret")
    assert len(found(index, "common", 1000)) == 200


def test_what_is_erased_during_a_checkpoint_is_gone_from_the_one_after(tmp_path: Path) -> None:
    index = index_of(*(f"common words number{slot}" for slot in range(200)), "common xyzzy42secret")
    (tmp_path / "1").mkdir()
    chunks = index.freeze(1)
    for chunk in chunks:
        index.write(chunk, str(tmp_path / "1" / chunk.name))
    index.remove(200, lsn=300, erase=True)
    index.release(True)
    save(index, tmp_path / "2")
    assert b"xyzzy42secret" in b"".join(path.read_bytes() for path in (tmp_path / "1").iterdir())
    assert b"xyzzy42secret" not in b"".join(path.read_bytes() for path in (tmp_path / "2").iterdir())
    assert index.validate() == []


def test_segments_stay_few_and_the_removed_are_dropped(tmp_path: Path) -> None:
    index = TextIndex()
    for turn in range(40):
        for slot in range(turn * 20, turn * 20 + 20):
            index.add(slot, [f"text number{slot}"], lsn=slot + 1)
        save(index, tmp_path / str(turn))
    assert index.stats()["segments"] <= 6
    for slot in range(0, 800, 2):
        index.remove(slot, lsn=1000)
    save(index, tmp_path / "last")
    stats = index.stats()
    assert (stats["documents"], stats["removed"]) == (400, 0)
    for slot in range(800):
        index.remove(slot, lsn=2000)
    save(index, tmp_path / "empty")
    assert len(TextIndex.open(str(tmp_path / "empty"))) == 0
    assert sorted(path.name for path in (tmp_path / "empty").iterdir()) == ["text"]


def test_the_protocol_is_held_to(tmp_path: Path) -> None:
    index = index_of("one")
    with pytest.raises(ValueError, match="not frozen"):
        index.release(True)
    chunks = index.freeze(1)
    with pytest.raises(ValueError, match="frozen already"):
        index.freeze(1)
    with pytest.raises(ValueError, match="never written"):
        index.release(True)
    with pytest.raises(ValueError, match="not frozen"):
        index.write(chunks[0], str(tmp_path / "x"))
    index.freeze(1)
    index.write(chunks[0], str(tmp_path / "x"))
    with pytest.raises(FileExistsError):
        index.write(chunks[0], str(tmp_path / "x"))
    index.release(False)
    assert found(index, "one") == [0]


def test_damage_is_reported_and_never_a_crash(tmp_path: Path) -> None:
    index = index_of(*(f"document{slot} of topic{slot % 5} words" for slot in range(300)))
    index.remove(7, lsn=301)
    save(index, tmp_path / "good")
    index.remove(8, lsn=302)
    target = tmp_path / "bad"
    save(index, target)
    queries = "document5 topic3 words document100"
    random = np.random.default_rng(5)
    refused = 0
    for path in list(target.iterdir()):
        good = path.read_bytes()
        for at in random.integers(0, len(good), 300).tolist():
            for damaged in (good[:at], good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :]):
                path.unlink()
                path.write_bytes(damaged)
                try:
                    opened = TextIndex.open(str(target))
                    assert opened.validate() != [] or damaged[:60] != good[:60] or at < 64
                    opened.search(queries, 5)
                    opened.remove(at % 300, lsn=400)
                except CorruptFile:
                    refused += 1
        path.unlink()
        path.write_bytes(good)
    assert refused > 600
    assert TextIndex.open(str(target)).validate() == []
    os.remove(next(target.glob("segment-*")))
    with pytest.raises(CorruptFile, match="missing"):
        TextIndex.open(str(target))
    with pytest.raises(CorruptFile, match="missing"):
        TextIndex.open(str(tmp_path / "nowhere"))


def test_threads_search_while_one_writes(tmp_path: Path) -> None:
    index = TextIndex()
    stop = threading.Event()
    wrong: list[str] = []

    def read() -> None:
        while not stop.is_set():
            slots, scores = index.search("steady word", 1000)
            if len(set(slots.tolist())) != len(slots) or (np.diff(scores) > 0).any():
                wrong.append("out of order")
            index.scores("steady", slots)
            index.stats()

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for slot in range(1500):
        index.add(slot, [f"steady word {slot}"], lsn=slot + 1)
        if slot % 3 == 0:
            index.remove(slot, lsn=slot + 1)
        if slot % 500 == 499:
            save(index, tmp_path / str(slot))
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert len(found(index, "steady", 5000)) == len(index) == 1000
    assert index.validate() == []
