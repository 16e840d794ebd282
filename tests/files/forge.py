"""Files that were taken apart, changed, and put together again with a right hash."""

import hashlib
import json
from pathlib import Path


class Forged:
    """The parts of a file: `metadata`, `tensors` (what the header says of each) and `data`."""

    def __init__(self, path):
        raw = Path(path).read_bytes()
        stop = 8 + int.from_bytes(raw[:8], "little")
        self.tensors = json.loads(raw[8:stop])
        self.metadata = self.tensors.pop("__metadata__")
        self.data = bytearray(raw[stop:])

    @property
    def facts(self):
        return json.loads(self.metadata["facts"])

    @facts.setter
    def facts(self, facts):
        self.metadata["facts"] = json.dumps(facts, sort_keys=True, separators=(",", ":"))

    def pieces(self):
        """The bytes of each tensor."""
        return {
            name: bytes(self.data[slice(*spec["data_offsets"])])
            for name, spec in self.tensors.items()
        }

    def put(self, pieces):
        """Other bytes for the tensors, one behind the other in the order of the header."""
        self.data = bytearray()
        for name, spec in self.tensors.items():
            spec["data_offsets"] = [len(self.data), len(self.data) + len(pieces[name])]
            self.data += pieces[name]

    def reshape(self, name, shape, dtype=None, data=b""):
        """Another shape, type and content of one tensor, in the place where it would be written."""
        pieces = self.pieces() | {name: data}
        spec = self.tensors.pop(name)
        self.tensors[name] = {"dtype": dtype or spec["dtype"], "shape": shape, "data_offsets": []}
        order = sorted(self.tensors, key=lambda n: (self.tensors[n]["dtype"] == "U8", n))
        self.tensors = {n: self.tensors[n] for n in order}
        self.put(pieces)

    def write(self, path):
        self.metadata["sha256"] = "0" * 64
        header = {"__metadata__": self.metadata} | self.tensors
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        Path(path).write_bytes(rehashed(len(text).to_bytes(8, "little") + text + self.data))


def rehashed(raw):
    """The same bytes with the hash that they should have."""
    zeroed = raw[:35] + b"0" * 64 + raw[99:]
    return raw[:35] + hashlib.sha256(zeroed).hexdigest().encode() + raw[99:]
