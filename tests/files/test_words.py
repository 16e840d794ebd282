from traceless.files.words import canonical_id


def test_what_somebody_types_is_the_id_of_a_table():
    texts = ["017", "1e3", "a.0", "-5", "x y", "17.5"]
    assert [canonical_id(text) for text in texts] == texts
    assert canonical_id("Zu\u0308rich") == canonical_id("Zürich")  # typed in two ways
    assert canonical_id(" 17.0") == "17"
