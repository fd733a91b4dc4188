import Foundation

/// A desktop portal of version 2, which this system has none of: what it was asked is read back.
final class PortalServer: Sendable {
    /// What one call said.
    struct Call: Decodable {
        let method: String
        let id: String
        /// What its values are, as text.
        let fields: [String: String]?
        let buttons: [[String: String]]?
        /// The first bytes of a picture, in hexadecimal digits.
        let picture: String?
        /// What nobody can do to its file any more.
        let seals: Int?
    }

    private let process: ChildProcess
    private let environment: [String: String]

    init(on bus: PrivateBus, version: Int = 2, purposes: [String] = [], categories: [String] = []) throws {
        environment = ["DBUS_SESSION_BUS_ADDRESS": bus.address]
        let lists = [purposes, categories].map { $0.joined(separator: " ") }
        process = try ChildProcess("/usr/bin/python3", ["-c", Self.script, "\(version)"] + lists, environment: environment)
        guard try process.firstLine() == "ready" else { throw FixtureFailure("the portal did not take its name") }
    }

    func stop() { process.stop() }

    func freeze() { kill(process.pid, SIGSTOP) }

    func thaw() { kill(process.pid, SIGCONT) }

    /// Waits for the next call.
    func nextCall() throws -> Call { try JSONDecoder().decode(Call.self, from: Data(process.firstLine().utf8)) }

    /// The person presses a button, or sends what was typed.
    func press(_ id: String, _ action: String, typed text: String = "") throws {
        try ChildProcess.run(
            "gdbus",
            [
                "call", "--session", "-d", "org.freedesktop.portal.Desktop", "-o", "/org/freedesktop/portal/desktop", "-m",
                "test.Portal.Press", "'\(id)'", "'\(action)'", "'\(text)'",
            ], environment: environment)
    }

    private static let script = #"""
        import fcntl, json, os, sys, dbus, dbus.service
        from dbus.mainloop.glib import DBusGMainLoop
        from gi.repository import GLib

        DBusGMainLoop(set_as_default=True)
        N = "org.freedesktop.portal.Notification"
        version, purposes, categories = int(sys.argv[1]), sys.argv[2].split(), sys.argv[3].split()

        class Portal(dbus.service.Object):
            @dbus.service.method(dbus.PROPERTIES_IFACE, in_signature="ss", out_signature="v")
            def Get(self, interface, name):
                if name == "version": return dbus.UInt32(version)
                return dbus.Dictionary({"category": dbus.Array(categories, signature="s"),
                                        "button-purpose": dbus.Array(purposes, signature="s")}, signature="sv")
            @dbus.service.method(N, in_signature="sa{sv}", out_signature="", byte_arrays=True)
            def AddNotification(self, number, fields):
                said = {"method": "add", "id": number, "fields": {}, "buttons": []}
                for key, value in fields.items():
                    if key == "buttons":
                        said["buttons"] = [{k: str(v) for k, v in button.items()} for button in value]
                    elif key == "icon" and value[0] in ("file-descriptor", "bytes"):
                        said["fields"][key] = value[0]
                        if value[0] == "bytes":
                            said["picture"] = bytes(value[1])[:4].hex()
                            continue
                        file = value[1].take()
                        said["seals"] = fcntl.fcntl(file, 1034)
                        said["picture"] = os.pread(file, 4, 0).hex()
                        os.close(file)
                    elif key == "sound" and not isinstance(value, str):
                        file = value[1].take()
                        said["fields"][key] = f"{value[0]} {fcntl.fcntl(file, 1034)} {os.pread(file, 99, 0).decode()}"
                        os.close(file)
                    elif key in ("icon", "display-hint"):
                        said["fields"][key] = " ".join(str(v) for v in value)
                    else:
                        said["fields"][key] = str(value)
                print(json.dumps(said), flush=True)
            @dbus.service.method(N, in_signature="s", out_signature="")
            def RemoveNotification(self, number):
                print(json.dumps({"method": "remove", "id": number}), flush=True)
            @dbus.service.signal(N, signature="ssav")
            def ActionInvoked(self, number, action, more): pass
            @dbus.service.method("test.Portal", in_signature="sss", out_signature="")
            def Press(self, number, action, text):
                more = [dbus.Dictionary({"activation-token": "token-2"}, signature="sv")] if version > 1 else []
                self.ActionInvoked(number, action, dbus.Array(more + ([text] if text else []), signature="v"))

        bus = dbus.SessionBus()
        portal = Portal(bus, "/org/freedesktop/portal/desktop")
        taken = dbus.service.BusName("org.freedesktop.portal.Desktop", bus)
        print("ready", flush=True)
        GLib.MainLoop().run()
        """#
}
