"""The driver protocol (../../PROTOCOL.md) for the Python clients: lines in, lines out, the records of the workload, what a member owns."""

import json
import os
import queue
import sys
import threading

BOOTSTRAP = os.environ["BOOTSTRAP"]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def send(line):
    """Writes one line, at once. Lines of several threads do not mix: one write is one line."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def one_line(error):
    return " ".join(f"{type(error).__name__}: {error}".split())


def error_event(error):
    send({"event": "error", "error": one_line(error)})


def record(i):
    """The record with number i: key, value, headers."""
    return f"key-{i}".encode(), f"value-{i}-{'x' * 200}".encode(), [("h", str(i).encode())]


class Member:
    """What the consumer of this process owns, and the events about it."""

    def __init__(self):
        self.owned = set()

    def assigned(self, partitions):
        self.owned |= set(partitions)
        self._changed({"event": "assigned"}, partitions)

    def revoked(self, partitions, lost=False):
        if not partitions:  # some clients call their listener also when there is nothing to let go
            return
        self.owned -= set(partitions)
        self._changed({"event": "revoked", "lost": True} if lost else {"event": "revoked"}, partitions)

    def revoke_all(self):
        """For a client that tells nobody when it is closed: its partitions are let go after this line."""
        self.revoked(list(self.owned))

    def _changed(self, event, partitions):
        send(event | {"partitions": sorted(partitions), "owned": sorted(self.owned)})

    def record(self, partition, offset, key, value, headers):
        header = dict(headers).get("h", b"").decode()
        send({"event": "record", "partition": partition, "offset": offset, "key": key.decode(), "value": value.decode(), "header": header})


def read_commands(put):
    """Calls put with each command, and with None at the end of stdin, from a thread of its own: a client may be blocked meanwhile."""

    def read():
        for line in sys.stdin:
            put(json.loads(line))
        put(None)

    threading.Thread(target=read, daemon=True).start()


def answer(command, do):
    """Runs one command and replies to it."""
    try:
        reply = do(command) or {}
    except Exception as error:  # whatever the client says is the answer
        reply = {"error": one_line(error)}
    send({"re": command["id"]} | reply)


def quit_after(command):
    """Replies to quit and ends the process, without the clients' own waiting for what nobody waits for."""
    if command is not None:
        send({"re": command["id"]})
    os._exit(0)


def serve(driver):
    """Runs a driver whose consumer is polled: between two commands driver.poll() is called, for some 100 ms, while driver.joined."""
    commands = queue.Queue()
    read_commands(commands.put)
    while True:
        if driver.joined and commands.empty():
            try:
                driver.poll()
            except Exception as error:
                driver.joined = False
                send({"event": "closed", "error": one_line(error)})
            continue
        command = commands.get()
        if command is None or command["do"] == "quit":
            quit_after(command)
        answer(command, getattr(driver, command["do"]))
