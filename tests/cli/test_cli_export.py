from traceless import Store
from traceless.tables import Schema, Table


def test_export_to_files(call, shop):
    import onnxruntime

    import traceless

    digest = call("status", "shop", "--json").json["digest"]
    assert call("export", "shop", "m.traceless", "--json").json["digest"] == digest
    assert traceless.load("m.traceless").digest() == digest
    assert digest in call("export", "shop", "m.onnx").out
    schema = Schema.from_facts(Store("shop").about["table"])
    X, _, _ = Table(["people.csv"], schema).arrays()
    session = onnxruntime.InferenceSession("m.onnx")
    labels = session.run(["label"], {"X": X})[0]
    assert labels.tolist() == Store("shop").model().predict(X).tolist()
    assert "must end in .traceless or .onnx" in call("export", "shop", "m.pkl", code=2).err
    assert call("export", "shop", "no/m.traceless", code=2).err.startswith("error: no/")
