"""Several servers on one host, each with its own devices; nobody is measured beside what another left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import scripted
from faults.leases import LEASED, launched, order, quiet, until
from faults.one_cell import OneCell
from pivotbench.files import read_json
from pivotbench.lease.ensure import Server, ensure, final_record, stop
from pivotbench.lease.locks import DeviceLocks, lock_folder
from pivotbench.lease.occupants import Occupant, note, remains
from pivotbench.lease.processes import Identity
from pivotbench.lease.slot import complaints
from pivotbench.lease.state import Record, live_launches
from pivotbench.results import STAGES
from workflow.campaign import Folder

ONE, TWO = "GPU-00000000-0000-4000-8000-000000000001", "GPU-00000000-0000-4000-8000-000000000002"
NOBODY = 65534


@dataclass
class Host:
    """The GPUs of a host and what stands on them."""

    file: Path

    def fill(self, **users: dict[int, int]) -> None:
        """Say which pid holds how many MiB, by ``one`` and ``two``."""
        self.file.write_text(json.dumps({ONE: users.get("one", {}), TWO: users.get("two", {})}))


@pytest.fixture
def host(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(folder / "gpus.json")
    host.fill()
    monkeypatch.setenv("PIVOTBENCH_TEST_GPUS", str(host.file))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "node"))
    return host


@pytest.fixture
def squatter() -> Iterator[subprocess.Popen[bytes]]:
    """A process that no lease knows of."""
    process = subprocess.Popen(["sleep", "300"])
    yield process
    process.kill()
    process.wait()


def on_gpu(folder: Path, key: str, seconds: float = 30.0, *, numa: bool = False) -> Server | Record:
    outcome = ensure(order(folder, key=key, gpus=1, numa=numa, slot_wait_seconds=seconds), quiet)
    if isinstance(outcome, Server):
        LEASED.append(outcome)
    return outcome


def variable(server: Server, name: str) -> str:
    environ = Path(f"/proc/{server.pids()[0]}/environ").read_text().split("\0")
    return next(e for e in environ if e.startswith(f"{name}=")).partition("=")[2]


def shown_devices(server: Server) -> str:
    return variable(server, "CUDA_VISIBLE_DEVICES")


def ended(server: Server, key: str) -> Record:
    server.release()
    stop(key=key)
    record = final_record(server)
    assert record is not None
    return record


@pytest.mark.usefixtures("host")
def test_two_servers_on_one_host_have_a_gpu_and_a_port_each(folder: Path) -> None:
    one, two = on_gpu(folder, "one"), on_gpu(folder, "two")
    assert isinstance(one, Server) and isinstance(two, Server)
    assert one.gpus() + two.gpus() == [ONE, TWO]
    assert [shown_devices(one), shown_devices(two)] == ["0", "1"]
    assert one.url != two.url
    third = on_gpu(folder, "three", 0.5)
    assert isinstance(third, Record) and third.reason is not None
    assert third.reason["code"] == "slot_refused"


@pytest.mark.usefixtures("host")
def test_kernels_are_kept_for_a_slot_and_no_other_and_a_dead_ones_guard_holds_up_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    one, two = on_gpu(folder, "one"), on_gpu(folder, "two")
    assert isinstance(one, Server) and isinstance(two, Server)
    kept = variable(one, "TORCH_EXTENSIONS_DIR")
    assert kept.startswith(str(folder / "cache"))
    assert one.facts["slot"]["caches"]["TORCH_EXTENSIONS_DIR"] == kept
    assert variable(two, "TORCH_EXTENSIONS_DIR") != kept
    build = Path(kept) / "py311_cu130" / "kernel"
    build.mkdir(parents=True)
    (build / "kernel.so").write_text("compiled")
    (build / "lock").write_text("")
    ended(one, "one")
    again = on_gpu(folder, "one")
    assert isinstance(again, Server) and again.gpus() == [ONE]
    assert variable(again, "TORCH_EXTENSIONS_DIR") == kept
    assert [path.name for path in build.iterdir()] == ["kernel.so"]


@pytest.mark.usefixtures("host")
def test_a_cache_that_cannot_be_written_keeps_no_server_from_its_slot(
    folder: Path,
) -> None:
    (folder / "cache").write_text("a file")
    server = on_gpu(folder, "one")
    assert isinstance(server, Server)
    [line] = complaints(server.facts["slot"])
    assert line.startswith("kernel caches are not kept for this slot alone: ") and str(folder) in line
    assert server.facts["slot"]["caches"] == {}


def sysfs(folder: Path, nodes: dict[int, int | None], cpus: dict[int, str]) -> Path:
    """A /sys in which the n-th GPU is on a node, None for one that is not told, and nodes have processors."""
    for number, node in nodes.items():
        device = folder / "sys" / "bus" / "pci" / "devices" / f"0000:{number:02x}:00.0"
        device.mkdir(parents=True)
        (device / "numa_node").write_text(f"{-1 if node is None else node}\n")
    for node, listed in cpus.items():
        place = folder / "sys" / "devices" / "system" / "node" / f"node{node}"
        place.mkdir(parents=True)
        (place / "cpulist").write_text(f"{listed}\n")
    return folder / "sys"


@pytest.mark.usefixtures("host")
def test_a_server_is_bound_to_the_node_of_its_gpu_where_that_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_, last = sorted(os.sched_getaffinity(0)) * 2
    tree = sysfs(folder, {1: 0, 2: 77}, {0: str(first), 77: str(last)})
    monkeypatch.setenv("PIVOTBENCH_TEST_SYSFS", str(tree))
    free, bound = on_gpu(folder, "free"), on_gpu(folder, "bound", numa=True)
    assert isinstance(free, Server) and isinstance(bound, Server)
    assert "numa" not in free.facts["slot"]
    told = bound.facts["slot"]["numa"]
    # No machine of the tests has a node 77: its processors are bound, its memory cannot be.
    assert (told["nodes"], told["cpus"], told["memory"]) == ([77], str(last), False)
    assert complaints(bound.facts["slot"]) == [told["why"]]
    assert {os.sched_getaffinity(pid) == {last} for pid in bound.pids()} == {True}
    assert os.sched_getaffinity(free.pids()[0]) == os.sched_getaffinity(0)


@pytest.mark.usefixtures("host")
def test_where_the_host_tells_no_node_the_server_runs_unbound_and_a_line_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIVOTBENCH_TEST_SYSFS", str(sysfs(folder, {1: None, 2: None}, {})))
    server = on_gpu(folder, "guest", numa=True)
    assert isinstance(server, Server)
    why = "hosts.numa: the server is not bound: the host tells no NUMA node of the GPU at 0000:01:00.0"
    assert complaints(server.facts["slot"]) == [why]
    assert os.sched_getaffinity(server.pids()[0]) == os.sched_getaffinity(0)


def test_beside_a_leak_nothing_is_launched_and_the_leak_is_named(
    folder: Path, host: Host, squatter: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    server = on_gpu(folder, "leaks")
    assert isinstance(server, Server)
    host.fill(one={squatter.pid: 40_000})
    record = ended(server, "leaks")
    assert not record.released
    assert record.memory["held_by"] == [f"sleep (pid {squatter.pid})"]
    refused = on_gpu(folder, "next", 1.0)
    assert isinstance(refused, Record) and refused.reason is not None
    assert (refused.reason["code"], refused.reason["kind"]) == ("slot_refused", "transient")
    for told in (ONE, server.launch_id, "40000 MiB", f"sleep (pid {squatter.pid})"):
        assert told in refused.reason["message"]
    squatter.kill()
    squatter.wait()
    assert isinstance(on_gpu(folder, "next"), Server)


def test_teardown_says_how_much_memory_is_left_where_and_who_holds_it(
    folder: Path, host: Host, squatter: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    cell = OneCell(folder, gpus=1)
    for stage in STAGES:
        if stage == "teardown":
            host.fill(one={squatter.pid: 40_000})
        done = cell.run(stage)
        assert done.returncode == 0, done.stderr
    told = read_json(cell.results / "teardown.json")
    assert (told["status"], told["verdict"], told["reason"]["code"]) == ("failed", "leaked", "leaked")
    assert told["reason"]["message"] == (
        "the server is not gone: GPU memory did not return to its level before the launch: "
        f"40000 MiB more on {ONE} (sleep (pid {squatter.pid}))"
    )


def test_a_leak_on_one_gpu_sends_the_next_server_to_another(
    folder: Path, host: Host, squatter: subprocess.Popen[bytes]
) -> None:
    server = on_gpu(folder, "leaks")
    assert isinstance(server, Server) and server.gpus() == [ONE]
    host.fill(one={squatter.pid: 40_000})
    ended(server, "leaks")
    other = on_gpu(folder, "next")
    assert isinstance(other, Server) and other.gpus() == [TWO]


def test_a_slot_whose_whole_watch_was_killed_heals_itself(folder: Path) -> None:
    server = launched(folder, "orphans=1", "ignore-term")
    [(_, handle)] = list(live_launches())
    assert handle.guard is not None
    for watcher in (handle.guard, handle.supervisor):
        os.kill(Identity.parse(watcher).pid, signal.SIGKILL)
    left = [Identity.parse(p) for p in handle.processes]
    second = launched(folder, key="another")
    assert not any(process.alive() for process in left)
    assert second.launch_id != server.launch_id


def test_a_lock_file_tells_any_user_what_still_stands_on_the_device(
    tmp_path: Path, squatter: subprocess.Popen[bytes]
) -> None:
    locks = DeviceLocks(["cpu"], 1, tmp_path)
    assert locks.try_acquire()
    alive = Identity.of(squatter.pid)
    note(locks.held["cpu"], Occupant("abc", [str(alive), "1:1"]))
    assert remains("cpu", locks.held["cpu"]) == f"launch abc left sleep (pid {squatter.pid})"
    squatter.kill()
    squatter.wait()
    assert remains("cpu", locks.held["cpu"]) is None
    os.pwrite(locks.held["cpu"], b"half-writ", 0)
    assert remains("cpu", locks.held["cpu"]) is None
    locks.release()


def test_locks_are_open_to_every_user_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIVOTBENCH_LOCKS", str(tmp_path / "locks"))
    before = os.umask(0o077)
    try:
        locks = DeviceLocks(["cpu"], 1)
        assert locks.try_acquire()
        locks.release()
    finally:
        os.umask(before)
    assert lock_folder().stat().st_mode & 0o7777 == 0o1777
    assert (lock_folder() / "cpu.lock").stat().st_mode & 0o777 == 0o666


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that every user may enter; pytest closes its own to others whenever it starts."""
    with tempfile.TemporaryDirectory(prefix="pivotbench-users-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run a campaign as another user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv (Debian: util-linux) is not here")
def test_two_users_share_a_slot_without_harm(open_to_all: Path) -> None:
    tmp_path = open_to_all
    campaigns = [Folder.create(tmp_path / name) for name in ("root", "nobody")]
    cell = "results/small/backends/good/r1/teardown.json"
    # Nobody may read this Python and this folder of the tests wherever they lie, and write to neither.
    as_nobody = [
        *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
        *("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"),
    ]
    shared, runs = tmp_path / "shared", []
    shared.mkdir()
    shared.chmod(0o1777)
    for campaign, before in zip(campaigns, ([], as_nobody), strict=True):
        environment = campaign.environment() | {
            "PIVOTBENCH_LOCKS": str(shared / "locks"),
            "HOME": str(campaign.path),
            "XDG_CACHE_HOME": str(campaign.path / "cache"),
        }
        if before:
            for path in (campaign.path, Path(environment["TMPDIR"]), *campaign.path.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        with (tmp_path / f"{campaign.path.name}.log").open("w") as log:
            command = [*before, *campaign.command(cell)]
            runs.append(subprocess.Popen(command, cwd=campaign.path, env=environment, stdout=log, stderr=log))
    for campaign, run in zip(campaigns, runs, strict=True):
        assert run.wait(timeout=240) == 0, (tmp_path / f"{campaign.path.name}.log").read_text()
        assert json.loads((campaign.path / cell).read_text())["verdict"] == "released"
    together = tmp_path / "events"
    together.write_text("".join(campaign.events.read_text() for campaign in campaigns))
    assert scripted.overlaps(together) == []
    assert {campaign.events.stat().st_uid for campaign in campaigns} == {0, NOBODY}
    assert until(lambda: not any((shared / "locks" / "launches").iterdir()), 10.0)
