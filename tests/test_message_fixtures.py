"""Messages as they have always been written: stored bytes say for ever what they said, and are what is written today."""

import numpy as np
import pytest
from fixtures import messages, places

import mpi_compress as mc

SAID = places.load(places.SAID)
STORED = {file.stem: places.load(file) for file in sorted(places.MESSAGES.glob("*.json"))}
GROUPS = [
    pytest.param(name, group, id=", ".join([name, *(f"{key} {value}" for key, value in group["options"].items())]))
    for name, groups in STORED.items()
    for group in groups
]
COMPRESSED = places.load(places.COMPRESSED)


def read(codec, message):
    """What a stored message says, where it ends, and its bytes."""
    data = np.frombuffer(bytes.fromhex(message["bytes"]), dtype=np.uint8)
    return *messages.decoded(codec, data, SAID[message["of"]]), data


def says(message):
    """What a stored message is to say."""
    return SAID[message.get("reads", message["of"])]


@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_a_stored_message_says_what_it_always_said(name, group):
    codec = messages.codec_of(name, group["options"])
    for message in group["messages"]:
        seen, end, data = read(codec, message)
        assert end == data.size, message["of"]
        assert messages.told(seen) == says(message), message["of"]
        assert messages.inside.wire_bits(data) == message["wire_bits"], message["of"]
        assert float(codec.paper_bits(seen)) == message["paper_bits"], message["of"]


@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_what_a_stored_message_says_is_written_as_it_always_was(name, group):
    codec = messages.codec_of(name, group["options"])
    for message in group["messages"]:
        content = messages.content_of(says(message), read(codec, message)[0])
        assert codec.encode(content).tobytes().hex() == message["bytes"], message["of"]


@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_what_was_given_before_it_was_rounded_is_written_as_it_always_was(name, group):
    codec, given = messages.codec_of(name, group["options"]), dict(messages.contents())
    stored = {message["of"]: message["bytes"] for message in group["messages"]}
    for of, content in given.items():
        if of in stored and messages.told(content) == SAID[of]:  # NumPy may draw other numbers some day
            assert codec.encode(content).tobytes().hex() == stored[of], of


def test_every_codec_has_stored_messages_of_every_kind_that_it_writes():
    assert set(STORED) == set(mc.codecs.codecs)
    for name, groups in STORED.items():
        kinds = {SAID[message["of"]]["kind"] for message in groups[0]["messages"]}
        assert kinds == {kind for kind in messages.inside.KINDS if messages.inside.writes(mc.codecs.codecs[name](), kind)}
        assert [group["options"]["float"] for group in groups[:2]] == [64, 32]
        for group in groups[-2:]:
            assert kinds == {SAID[message["of"]]["kind"] for message in group["messages"]}
        assert [group["options"] for group in groups[-2:]] == [{"float": 16}, {"float": "bf16"}]


@pytest.mark.parametrize("table", messages.COMPRESSORS, ids=messages.named)
def test_a_compressor_sends_what_it_always_sent(table):
    places.skip_elsewhere(COMPRESSED["made on"])
    assert messages.of_compressor(table) == COMPRESSED["messages"][messages.named(table)]


def test_every_compressor_has_stored_messages():
    assert {table["name"] for table in messages.COMPRESSORS} == set(mc.compressors.compressors)
    assert {messages.named(table) for table in messages.COMPRESSORS} == set(COMPRESSED["messages"])
