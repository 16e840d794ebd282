def test_the_demo_proves_its_point(call):
    told = call("demo", "--json").json
    assert [step["rows"] for step in told["steps"]] == [1000, 1500, 1200]
    assert all(step["same"] for step in told["steps"])
    assert told["verified"]
    assert told["accuracy"] > 0.9
    assert "never saw the 300 rows" in call("demo").out
