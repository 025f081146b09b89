"""A secret reaches the server that needs it, and no file, no command line and no other machine."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from faults.test_lease import LEASED, order, quiet
from pivotbench import redaction
from pivotbench.engines.base import Command
from pivotbench.lease.contained import contained
from pivotbench.lease.ensure import Server, ensure, final_record, stop
from pivotbench.lease.processes import Identity
from pivotbench.lease.slot import Slot
from pivotbench.lease.state import Record
from pivotbench.machine.containers import Container
from pivotbench.redaction import REDACTED, redact_log, redacted, redacted_log_line, secrets_of

SECRET = "correct-horse-battery"
ISSUED = "hf_" + "Ab3" * 10
LOG = f"""\
server_args=ServerArgs(api_key='{SECRET}x', admin_api_key=None, model_path='m')
Authorization: Bearer {ISSUED}
RuntimeError: CUDA out of memory while {SECRET} was used with {ISSUED}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PIVOTBENCH_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setenv("PIVOTBENCH_TEST_PYTHON", os.environ.get("PIVOTBENCH_TEST_PYTHON", "python3"))
    monkeypatch.setenv("MY_LICENCE", SECRET)
    (tmp_path / "crash.log").write_text(LOG)
    yield tmp_path
    stop(grace_seconds=0.0)
    LEASED.clear()


def texts(folder: Path) -> dict[str, str]:
    """What every file below a folder holds, save the script that the test itself wrote."""
    files = [f for f in folder.rglob("*") if f.is_file() and f.name != "crash.log"]
    return {str(file.relative_to(folder)): file.read_text(errors="replace") for file in files}


def of_processes(server: Server, what: str) -> list[str]:
    """What /proc says of each process of a server that is still there."""
    files = [Path(f"/proc/{pid}/{what}") for pid in server.pids()]
    return [file.read_text(errors="replace") for file in files if file.exists()]


def test_what_a_dying_server_says_of_a_secret_is_in_no_file(folder: Path) -> None:
    asked = order(folder, "crash", f"crash-log={folder / 'crash.log'}")
    record = ensure(replace(asked, secrets=["MY_LICENCE"]), quiet)
    assert isinstance(record, Record)
    assert record.reason is not None
    assert REDACTED in json.dumps(record.reason["evidence"])
    for name, text in texts(folder).items():
        assert SECRET not in text, name
        assert ISSUED not in text, name
    assert "api_key='[redacted]'" in Path(asked.log).read_text()


def test_a_server_gets_the_secret_by_its_environment_alone(folder: Path) -> None:
    server = ensure(replace(order(folder), secrets=["MY_LICENCE"]), quiet)
    assert isinstance(server, Server)
    try:
        assert any(SECRET in said for said in of_processes(server, "environ"))
        log = folder / "logs" / "launch.log"
        assert log.stat().st_mode & 0o777 == 0o600, "until it has been cleaned"
        assert not any(SECRET in said for said in of_processes(server, "cmdline"))
        assert not any(SECRET in text for text in texts(folder).values())
    finally:
        server.release()
    stop(key="cell", owner=str(Identity.own()))
    assert final_record(server) is not None
    assert log.stat().st_mode & 0o777 == 0o666 & log.parent.stat().st_mode
    assert not any(SECRET in text for text in texts(folder).values())


def test_a_container_gets_the_secret_by_name(folder: Path) -> None:
    command = Command(study=("python3", "-m", "server"), added=())
    asked = replace(order(folder), secrets=["MY_LICENCE"])
    for runtime in ("docker", "apptainer"):
        run = contained(asked, Container(runtime, "image:1"), command, Slot(), {}, [])  # type: ignore[arg-type]
        assert SECRET in run.environment.values()
        assert SECRET not in " ".join([*run.argv, *run.shown])


def test_servers_listen_on_this_machine_alone(folder: Path) -> None:
    server = ensure(order(folder), quiet)
    assert isinstance(server, Server)
    port = int(server.url.rpartition(":")[2])
    listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening += [line.split()[1] for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    assert {
        address.partition(":")[0] for address in listening if int(address.partition(":")[2], 16) == port
    } == {"0100007F"}
    server.release()


@pytest.mark.parametrize("name", ["api_key", "admin-api-key", "ssl_keyfile_password", "hf_token"])
def test_settings_that_take_a_secret_are_stored_without_it(name: str) -> None:
    stored = redacted({"effective": {name: "abc", "threads": 4, "internal_states": [{name: "abc"}]}}, ())
    assert stored == {
        "effective": {name: REDACTED, "threads": 4, "internal_states": [{name: REDACTED}]},
    }
    assert redacted({name: None}, ()) == {name: None}


def test_tokens_of_text_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", ISSUED)
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
    answer = {"token": "the", "tokens": ["a"], "max_tokens": 8, "text": f"key {ISSUED}"}
    assert redacted(answer, secrets_of()) == {**answer, "text": f"key {REDACTED}"}


def test_short_values_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "flash")
    assert redacted("flash-attn: on", secrets_of(["SOME_TOKEN"])) == "flash-attn: on"


def test_a_log_that_cannot_be_written_anew_keeps_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    log = tmp_path / "server.log"
    log.write_text(f"key {SECRET}\n")
    monkeypatch.setattr(redaction, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        redact_log(log, [SECRET])
    assert log.read_text() == ""


def test_a_log_without_secrets_is_not_touched(tmp_path: Path) -> None:
    log = tmp_path / "launch.log"
    log.write_bytes(b"api_key=None\nloss 0.1 \xff\r\n" * 5000)
    before = (log.stat().st_ino, log.read_bytes())
    redact_log(log, [SECRET])
    assert (log.stat().st_ino, log.read_bytes()) == before
    redact_log(tmp_path / "absent.log", [SECRET])
    assert redacted_log_line("--api-key abc --port 1", ()) == f"--api-key {REDACTED} --port 1"


@pytest.mark.parametrize(
    "line",
    [
        """{"api_key": "%s", "port": 1}""",
        r"""{\"admin_api_key\":\"%s\",\"port\":1}""",
        """['--api-key', '%s', '--port', '1']""",
        """--admin-api-key='%s' --port 1""",
        """--api-key %s --port 1""",
        """api_key=%s, port=1""",
        """api_key: %s""",
        """{'hf_token': '%s'}""",
        """X-API-Key: %s""",
        """OPENAI_API_KEY=%s python""",
        """AWS_SECRET_ACCESS_KEY=%s""",
        """ssl_keyfile_password: Some("%s"), port: 1""",
        """[\n  "--api-key",\n  "%s",\n  "--port",\n  "1"\n]""",
        """['--admin-api-key',\r\n '%s']""",
        """['--api-key', '--hf-token', '%s']""",
        """--api-key --hf-token %s""",
        """'--api-key',\n'--hf-token',\n'%s'""",
        """'--api-key',\n\n \n'%s',\n'--port',\n'1'""",
        """INFO '--api-key',\nINFO '%s',\nINFO '1'""",
        """12:09:59.98 INFO|['--api-key',\n12:10:00.01 INFO| '%s']""",
        """- --api-key\n- %s\n- --port\n- 1""",
        """INFO   - "--api-key"\nINFO   - "%s\"""",
        """- --api-key\n- --hf-token\n- %s""",
        """- - --api-key\n  - %s""",
    ],
)
@pytest.mark.parametrize("value", ["hunter2", "a/b+c.d:e&f;g=h"])
def test_a_log_tells_no_value_of_a_key_in_whatever_form(line: str, value: str) -> None:
    assert redacted_log_line(line % value, ()) == line % REDACTED


def test_a_key_and_its_value_on_the_next_line_are_not_parted_however_long_the_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    for before in range(redaction._BLOCK_BYTES - 40, redaction._BLOCK_BYTES + 10):
        log.write_text("x" * before + '\n  "--api-key",\n  "hunter2",\n' + "y" * 100)
        redact_log(log, [])
        assert log.read_text() == "x" * before + f'\n  "--api-key",\n  "{REDACTED}",\n' + "y" * 100


@pytest.mark.parametrize("before", [*range(redaction._BLOCK_BYTES - 20, redaction._BLOCK_BYTES + 2)])
def test_nor_are_they_by_blank_lines_between(tmp_path: Path, before: int) -> None:
    log = tmp_path / "server.log"
    log.write_text("y" * before + "\n'--api-key',\n\n 'hunter2'")
    redact_log(log, [])
    assert log.read_text() == "y" * before + f"\n'--api-key',\n\n '{REDACTED}'"


def test_a_log_of_flags_alone_is_searched_once_and_not_anew_with_every_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Searched:
        bytes = 0

        def search(self, text: bytes) -> re.Match[bytes] | None:
            self.bytes += len(text)
            return follows.search(text)

    follows, searched = redaction._VALUE_FOLLOWS, Searched()
    monkeypatch.setattr(redaction, "_VALUE_FOLLOWS", searched)
    log = tmp_path / "server.log"
    log.write_bytes(b"'--api-key',\n" * 300)
    redact_log(log, [])
    assert 0 < searched.bytes <= 2 * log.stat().st_size


@pytest.mark.parametrize(
    "setting",
    [
        "api_key=%s",
        "password: %s",
        "auth_token=%s, port=1",
    ],
)
@pytest.mark.parametrize(
    "value",
    [
        "my.secret-abc123",
        "corp.secret",
        "hunter.password",
        "sk.prod.my_secret",
        "eyJ.abc.access_token",
        "config.password!23",
        "Self.Secret",
        "none-of-yours",
        "True.Secret1",
    ],
)
def test_what_only_looks_like_the_name_of_a_setting_is_a_value(setting: str, value: str) -> None:
    assert redacted_log_line(setting % value, ()) == setting % REDACTED


def test_a_quoted_value_ends_with_its_own_quote() -> None:
    assert redacted_log_line(r"""{"password": "a'b\"c d", "port": 1}""", ()) == (
        f"""{{"password": "{REDACTED}", "port": 1}}"""
    )


def test_a_known_secret_goes_whole_whatever_it_looks_like() -> None:
    assert redacted_log_line("api_key=one,two three", ["one,two three"]) == f"api_key={REDACTED}"


@pytest.mark.parametrize(
    "line",
    [
        "ServerArgs(api_key=None, admin_api_key=None, ssl_keyfile_password=None)",
        """{"api_key": null, "admin_api_key": ""}""",
        "usage: server [--api-key]",
        "def __init__(self, api_key: str = None, token_ids=[1])",
        "if self.api_key == None:",
        "    client = Client(api_key=self.api_key, password=self.args.ssl_keyfile_password)",
        "    hf_token=args.token, password: config.password",
        """    api_key=os.environ["API_KEY"], password=os.environ.get('DB_PASSWORD')""",
        """parser.add_argument(\n    "--api-key",\n)""",
        "use --api-key\nuse it well",
        "the api_key, if any, is checked; max_new_tokens=8, token=the",
    ],
)
def test_a_log_in_which_a_key_has_no_value_is_left_alone(line: str) -> None:
    assert redacted_log_line(line, ()) == line
