"""Damaged sweep stores: damage is reported and recomputed, and never read as data."""

import json
import os
import pickle
import re
import shutil
import warnings
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest
import xarray
import zarr
from simulation_options import grouped_sweep

import geomctrl as gc
from geomctrl.control.sweeping import columns
from geomctrl.control.sweeping import store as stores
from geomctrl.control.sweeping.sweep import load
from geomctrl.errors import ArgumentError, SweepError

THREAD = {"executor": ThreadPoolExecutor(1)}
SPACE = {"x": np.arange(4.0), "word": ["a", "bb"]}
MEASURES = {"size": lambda run: run.q[-1, 0], "both": lambda run: run.q[-1]}


def make(point):
    if point["word"] == "bb" and point["x"] == 3.0:
        raise ValueError("not here")
    robot = gc.models.two_link()
    q = np.array([0.1 * point["x"], 0.2])
    return robot, gc.controllers.PDGravity(robot, q), q, np.zeros(2)


def swept(store=None):
    return gc.sweep(make, SPACE, MEASURES, 0.004, 1e-3, **grouped_sweep(block=2, store=store, **THREAD))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a complete store and its table."""
    store = tmp_path_factory.mktemp("whole") / "s.zarr"
    return store, swept(store)


@pytest.fixture
def store(whole, tmp_path):
    return shutil.copytree(whole[0], tmp_path / "s.zarr")


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


DAMAGES = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "flipped": flip,
    "garbage": lambda path: path.write_bytes(b"garbage" * 9),
    "another block's": lambda path: shutil.copy(path.with_name("0"), path) if path.is_file() else None,
}
CHUNKS = {"size": "c/1", "both": "c/1/0", "t_reached": "c/1", "checksum": "c/1/0"}


@pytest.mark.quick(4)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("array", CHUNKS)
def test_a_damaged_chunk_is_named_and_computed_again(whole, store, array, damage):
    path, named = store / array / CHUNKS[array], "" if array == "checksum" else array
    if damage == "another block's" and array in ("both", "checksum"):
        shutil.copy(store / array / "c" / "0" / "0", path)
    else:
        DAMAGES[damage](path)
    if array == "t_reached" and damage == "another block's":  # which equals the same number
        xarray.testing.assert_identical(load(store), whole[1])
        return
    with pytest.warns(RuntimeWarning, match=rf"{store}.* is damaged: block 1 \(runs 2 to 3\) of .*{named}"):
        part = load(store)
    assert part.success.values.ravel().tolist() == [True, True, False, False, True, True, True, False]
    assert np.isnan(part["size"].values.ravel()[2:4]).all()
    with pytest.warns(RuntimeWarning, match=r"block 1 \(runs 2 to 3\)"):
        xarray.testing.assert_identical(swept(store), whole[1])
    xarray.testing.assert_identical(load(store), whole[1])  # repaired: no warning any more


@pytest.mark.quick(5)
@pytest.mark.parametrize("damage", [x for x in DAMAGES if x != "another block's"])
@pytest.mark.parametrize("name", ["done", "x"])
def test_damaged_marks_and_parameters(whole, store, name, damage):
    DAMAGES[damage](store / name / "c" / ("1" if name == "done" else "0"))
    if name == "x":
        with pytest.raises(ArgumentError, match="is damaged: the parameter 'x'"):
            load(store)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        xarray.testing.assert_identical(swept(store), whole[1])
    assert len(said) == (name == "x")
    assert all(str(store) in str(w.message) for w in said)
    if name == "done":
        assert zarr.open_group(store)["done"][:].all()  # complete blocks are marked again
    xarray.testing.assert_identical(load(store), whole[1])


def test_a_damaged_block_that_can_not_be_written_again_is_still_named(store):
    (store / "size" / "c" / "1").unlink()
    (store / "size" / "c" / "1").mkdir()
    (store / "done" / "c" / "2").unlink()
    with pytest.warns(RuntimeWarning, match="block 1"), pytest.raises(SweepError, match="block from run 2 on"):
        swept(store)
    with pytest.warns(RuntimeWarning, match=r"is damaged: block 1 \(runs 2 to 3\) of size\. "):
        load(store)


def test_a_damaged_block_is_named_though_the_marks_are_lost(whole, store):
    shutil.rmtree(store / "done" / "c")
    (store / "size" / "c" / "1").unlink()
    with pytest.warns(RuntimeWarning, match=r"is damaged: block 1 \(runs 2 to 3\) of size\. "):
        load(store)
    with pytest.warns(RuntimeWarning, match=r"block 1 \(runs 2 to 3\)"):
        xarray.testing.assert_identical(swept(store), whole[1])


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", ["size", "done", "checksum", "x"])
@pytest.mark.parametrize("content", [None, "", "{", '{"zarr_format": 3}'])
def test_an_array_whose_description_is_damaged(whole, store, name, content):
    path = store / name / "zarr.json"
    path.unlink() if content is None else path.write_text(content)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        xarray.testing.assert_identical(swept(store), whole[1])
    assert any(f"{store}' is damaged" in str(w.message) for w in said) or name == "done"
    xarray.testing.assert_identical(load(store), whole[1])


@pytest.mark.quick(4)
@pytest.mark.parametrize(("old", "new"), [('"seed": 0', '"seed": 1'), ('"dt": 0.001', '"dt": 0.003'), ('"": ', '"": 1'),
                                          ('"checksum"', '"chdcksum"'), ('"x": ', '"x": 1')])  # fmt: skip
def test_a_description_that_is_damaged(whole, store, old, new):
    """`replay` takes seed and dt from it."""
    path = store / "zarr.json"
    before, there, after = path.read_text().rpartition(old)
    assert there
    path.write_text(before + new + after)
    with pytest.raises(ArgumentError, match=f"{store}' is damaged"):
        load(store)
    with pytest.warns(RuntimeWarning, match=rf"{store}' is damaged: .*, written again"):
        xarray.testing.assert_identical(swept(store), whole[1])
    xarray.testing.assert_identical(load(store), whole[1])
    assert gc.replay(store, 1, make).t[-1] == 0.004


def test_another_sweep_does_not_take_a_store_whose_description_is_damaged(store):
    path = store / "zarr.json"
    path.write_text(path.read_text().replace('"dt": 0.001', '"dt": 0.002'))
    with pytest.raises(ArgumentError, match="is damaged: its description"):
        gc.sweep(make, SPACE, MEASURES, 0.004, 2e-3, **grouped_sweep(block=2, store=store, **THREAD))


def test_numbers_in_a_block_without_results_are_not_read(tmp_path):
    def some(point):
        if point["x"] > 1.0:
            raise ValueError("no loop")
        return make(point)

    store = tmp_path / "s.zarr"
    first = gc.sweep(some, SPACE, MEASURES, 0.004, 1e-3, **grouped_sweep(block=2, store=store, **THREAD))
    shutil.copy(store / "size" / "c" / "0", store / "size" / "c" / "3")
    xarray.testing.assert_identical(load(store), first)


@pytest.mark.slow
@pytest.mark.parametrize("array", ["both", "reason", "checksum", "success"])
@pytest.mark.parametrize("other", ["t_reached", "success", "checksum", "both", "word"])
def test_descriptions_of_arrays_that_are_swapped(whole, store, array, other):
    (store / array / "zarr.json").write_text((store / other / "zarr.json").read_text())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        part = load(store)
        xarray.testing.assert_identical(swept(store), whole[1])
    assert array == other or len(said) == 2
    assert array == other or not part.success.values.any()
    xarray.testing.assert_identical(load(store), whole[1])


@pytest.mark.slow
def test_every_flipped_bit_of_a_chunk_is_noticed_or_changes_nothing(whole, store):
    path = store / "size" / "c" / "1"
    content = path.read_bytes()
    for k in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[k // 8] ^= 1 << k % 8
        path.write_bytes(flipped)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = load(store)
        if said:
            assert not result.success.values.ravel()[2:4].any()
        else:
            xarray.testing.assert_identical(result, whole[1])


def test_it_is_said_how_many_runs_were_there(store, tmp_path, capfd):
    swept(tmp_path / "new.zarr")
    assert "resumed" not in capfd.readouterr().err
    for chunk in ("done/c/1", "checksum/c/1/0"):  # as if the block had not been computed
        (store / chunk).unlink()
    swept(store)
    assert capfd.readouterr().err == "geomctrl: resumed: 6 of 8 runs were there\n"


def test_stores_in_the_older_format_of_zarr_are_refused_by_name(whole, tmp_path):
    record = json.loads((whole[0] / "zarr.json").read_text())["attributes"]
    old = tmp_path / "old.zarr"
    zarr.create_group(old, zarr_format=2, attributes=record)
    for act in (swept, load):
        with pytest.raises(ArgumentError, match=rf"store: '{re.escape(str(old))}' is in Zarr's format 2"):
            act(old)


@pytest.mark.filterwarnings("ignore:sweep. no point has a run")
def test_blocks_that_are_all_blank_are_whole(tmp_path):
    """Zarr does not write chunks of the fill value, and forgets the signs of nan in them."""

    def nothing(point):
        raise ValueError("no loop")

    def nan(run):
        return -np.nan

    for function, measure in ((nothing, {"a": nan}), (make, {"a": nan, "none": lambda run: 0})):
        store = tmp_path / f"{function.__name__}.zarr"
        options = dict(t_end=0.004, dt=1e-3, block=2, store=store, **THREAD)
        first = gc.sweep(function, SPACE, measure, **grouped_sweep(**options))
        xarray.testing.assert_identical(gc.sweep(function, SPACE, measure, **grouped_sweep(**options)), first)
        xarray.testing.assert_identical(load(store), first)


# --- stores of strangers ---------------------------------------------------------------------------------------------


def changed(path, change):
    """Change the JSON document in a file by a function."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_decoders_that_consolidated_metadata_name_are_not_run(whole, store, tmp_path, monkeypatch):
    """Zarr accepts metadata of its older format there, whose compressor may be pickle."""
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # consolidated metadata are not part of the format yet
        zarr.consolidate_metadata(store)
    executed = tmp_path / "executed"

    class Attack:
        def __reduce__(self):
            return os.mkdir, (str(executed),)

    array = {"zarr_format": 2, "node_type": "array", "shape": [8], "chunks": [8], "dtype": "|O", "fill_value": ""}
    array |= {"order": "C", "compressor": {"id": "pickle", "protocol": 5}, "filters": [{"id": "vlen-utf8"}]}
    changed(store / "zarr.json", lambda x: x["consolidated_metadata"]["metadata"].update(size=array))
    (store / "size" / "0").write_bytes(pickle.dumps(Attack()))
    assert zarr.open_group(store)["size"].metadata.zarr_format == 2  # what the attack relies on
    xarray.testing.assert_identical(load(store), whole[1])
    xarray.testing.assert_identical(swept(store), whole[1])
    assert not executed.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("place", ["zarr.json", "both/c/0/0", "done/zarr.json"])
@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "link"])
def test_special_files_are_refused_and_not_opened(store, place, plant):
    (store / place).unlink()
    plant(store / place)
    for act in (load, swept):
        with pytest.raises(ArgumentError, match=re.escape(f"{store}' has '{store / place}', a link, pipe or device")):
            act(store)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_store_that_is_no_folder_is_refused(tmp_path):
    plants = os.mkfifo, lambda path: path.write_text("x"), lambda path: path.symlink_to(tmp_path / "nowhere")
    for k, plant in enumerate(plants):
        plant(tmp_path / f"{k}.zarr")
        for act in (load, swept):
            with pytest.raises(ArgumentError, match=f"store: expected a sweep's store, got '{tmp_path}/{k}.zarr'"):
                act(tmp_path / f"{k}.zarr")


@pytest.mark.quick(3)
@pytest.mark.parametrize("content", ["null", "1", "[]", "[" * 100_000, '{"a":' * 100_000, '{"zarr_format": 4}'])
def test_a_description_that_is_none_is_refused(store, content):
    (store / "zarr.json").write_text(content)
    for act in (load, swept):
        with pytest.raises(ArgumentError, match="expected a sweep's store, got"):
            act(store)


@pytest.mark.quick(4)
@pytest.mark.parametrize("change", [{"runs": 10**13}, {"sizes": {"x": 4, "y": 10**13}}, {"block": 0}, {"block": "x"},
                                    {"parameters": [1]}, {"measures": {"size": 3}},
                                    {"identity": {"x": 3}}, {"identity": None}])  # fmt: skip
def test_a_record_with_a_right_digest_may_still_be_wrong(whole, store, change):
    def forged(content):
        attributes = content["attributes"]
        attributes["sweep"] |= change
        attributes["checksum"][""] = stores._record_digest(attributes["sweep"])

    changed(store / "zarr.json", forged)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ArgumentError, match=f"{store}' is damaged: (its description|the parameter 'x')"):
            load(store)
        if "parameters" in change:  # written again, as attributes of parameters may change
            xarray.testing.assert_identical(swept(store), whole[1])
            return
        with pytest.raises(ArgumentError, match=f"{store}' is damaged: its description; give another folder"):
            swept(store)


def test_shapes_and_chunks_of_damaged_descriptions_take_no_memory(whole, store):
    grid = {"name": "regular", "configuration": {"chunk_shape": [2, 10**10]}}
    changed(store / "both" / "zarr.json", lambda x: x.update(shape=[8, 10**10], chunk_grid=grid))
    changed(store / "checksum" / "zarr.json", lambda x: x["chunk_grid"]["configuration"].update(chunk_shape=[0, 0]))
    with pytest.warns(RuntimeWarning, match="is damaged: block 0"):
        xarray.testing.assert_identical(swept(store), whole[1])


def test_units_come_from_the_record_alone(tmp_path):
    space, store = {"x": ("s", [1.0, 2.0], {"units": "N m", "range": np.array([0, 1])})}, tmp_path / "s.zarr"

    def one(point):
        return make({"x": point["x"], "word": "a"})

    table = gc.sweep(one, space, MEASURES, 0.004, 1e-3, **grouped_sweep(store=store, **THREAD))
    assert table["x"].attrs == {"units": "N m", "range": [0, 1]}
    changed(store / "x" / "zarr.json", lambda x: x["attributes"].update(units="N k"))
    xarray.testing.assert_identical(load(store), table)


@pytest.mark.filterwarnings("ignore:store. .* is damaged")
def test_blocks_that_another_process_completes_during_reading_are_not_damaged(whole, store, monkeypatch):
    group, read = zarr.open_group(store), columns.Disk._read
    for name, array in group.arrays():
        if name == "checksum":
            array[1:] = 0
        elif name not in SPACE:  # all blocks but the first
            array[2:] = columns.blank(array[:])

    def completed(disk, *arguments):
        rows = read(disk, *arguments)
        shutil.copytree(whole[0], store, dirs_exist_ok=True)
        return rows

    monkeypatch.setattr(columns.Disk, "_read", completed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(store)["success"].values.ravel()[:2].all()
    monkeypatch.undo()
    xarray.testing.assert_identical(load(store), whole[1])


def test_attributes_of_parameters_may_change(store, capfd):
    renamed = {**SPACE, "x": ("x", SPACE["x"], {"units": "rad"})}
    for space, attrs in ((renamed, {"units": "rad"}), (SPACE, {})):
        table = gc.sweep(make, space, MEASURES, 0.004, 1e-3, **grouped_sweep(block=2, store=store, **THREAD))
        assert table["x"].attrs == load(store)["x"].attrs == dict(zarr.open_group(store)["x"].attrs) == attrs
    assert capfd.readouterr().err.count("resumed: 8 of 8 runs were there") == 2


def test_a_store_that_is_removed_while_the_sweep_runs(tmp_path):
    store = tmp_path / "s.zarr"

    class Serial:
        def submit(self, function, *arguments):
            future = Future()
            future.set_result(function(*arguments))
            return future

    def remover(run):
        shutil.rmtree(store, ignore_errors=True)
        return 0.0

    execution = {"executor": Serial(), "block": 1, "store": store}
    with pytest.raises(SweepError, match=f"store: '{store}': .* of 8 runs that were computed are not there any more"):
        gc.sweep(make, SPACE, {"m": remover}, 0.004, 1e-3, **grouped_sweep(**execution))


# --- names and text --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["checksum", "done", "zarr.json", "a\x00", "\ud800", "a\nb"])
def test_names_that_a_store_can_not_have(name):
    with pytest.raises(ArgumentError, match="space: "):
        gc.sweep(make, {name: [1.0]}, MEASURES, 0.004, 1e-3)
    if name.isidentifier():
        with pytest.raises(ArgumentError, match="is a reserved name"):
            gc.sweep(make, SPACE, {name: len}, 0.004, 1e-3)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (["\ud800", "b"], "lone surrogates"),
        (np.array([1, 2], np.longdouble), "expected numbers"),
        (("s", [1.0], {"units": object()}), "attributes that JSON can represent"),
        (("s", [1.0], {1: 2}), "attributes that JSON can represent"),
    ],
)
def test_values_that_a_store_can_not_hold(entry, message):
    with pytest.raises(ArgumentError, match=f"space: 'x': .*{message}"):
        gc.sweep(make, {"x": entry}, MEASURES, 0.004, 1e-3)


def test_other_byte_orders_and_text_that_utf8_lacks(tmp_path):
    def failing(point):
        raise ValueError("file \udcff")

    space, store = {"x": np.array([1.0, 2.0], ">f8")}, tmp_path / "b.zip"  # a folder, whatever its suffix
    options = grouped_sweep(store=store, **THREAD)
    with pytest.warns(UserWarning, match="no point has a run"):
        first = gc.sweep(failing, space, MEASURES, 0.004, 1e-3, **options)
    assert first["reason"].values.tolist() == [r"make: ValueError: file \udcff"] * 2
    xarray.testing.assert_identical(load(store), first)
