"""Writes all messages to and from notification servers on a bus to a file, one JSON object for each line.

The recorder is a separate process that monitors the bus in the same way as dbus-monitor. It also sees messages for a single connection. A
byte array is written as its length and its first bytes.

usage: bus_recorder.py ADDRESS FILE
"""
import json
import sys
import time

import dbus
import dbus.bus
import dbus.lowlevel
import dbus.mainloop.glib
from gi.repository import GLib

HANDLED = 0
KINDS = {1: "call", 2: "answer", 3: "error", 4: "signal"}
RULES = ["interface='org.freedesktop.Notifications'", "type='method_return'", "type='error'"]


def plain(value):
    """Converts a D-Bus value to a JSON value."""
    if isinstance(value, (dbus.ByteArray, bytes)):
        return {"bytes": len(value), "begin": bytes(value[:12]).hex()}
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, dbus.Boolean):
        return bool(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def main():
    address, path = sys.argv[1:]
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    connection = dbus.bus.BusConnection(address)
    with open(path, "a", buffering=1) as file:
        def note(_, message):
            arguments = plain(message.get_args_list(byte_arrays=True))
            file.write(json.dumps({
                "at": time.monotonic(), "kind": KINDS.get(message.get_type()), "member": message.get_member(),
                "sender": message.get_sender(), "to": message.get_destination(), "serial": message.get_serial(),
                "answers": message.get_reply_serial(), "error": message.get_error_name(), "arguments": arguments}) + "\n")
            # A monitor must not send responses. If it did, the bus would close its connection.
            return HANDLED

        connection.add_message_filter(note)
        connection.call_blocking("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus.Monitoring", "BecomeMonitor",
                                 "asu", (RULES, 0))
        file.write(json.dumps({"at": time.monotonic(), "kind": "ready"}) + "\n")
        GLib.MainLoop().run()


if __name__ == "__main__":
    main()
