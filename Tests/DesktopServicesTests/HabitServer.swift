import Foundation

/// A fake notification server in a separate process. The server has the name and the special behaviour of a real server. The test
/// reads the calls that the server received.
final class HabitServer: Sendable {
    /// The arguments of one call of `Notify`.
    struct Call: Decodable {
        let replaces: UInt32
        let icon: String
        let title: String
        let body: String
        /// The keys and labels of the buttons, alternating.
        let actions: [String]
        /// The hints, with their values as text.
        let hints: [String: String]
        let timeout: Int
    }

    /// The result of the first call of `Notify`.
    enum FirstCall: String, CaseIterable {
        case isAnswered
        /// The server refuses the call, as Plasma refuses a repeated text within a short time.
        case isRefused
        /// The server crashes.
        case kills
        /// The server receives the call and never answers.
        case isLost
    }

    private let process: ChildProcess
    private let environment: [String: String]

    init(
        on bus: PrivateBus, name: String, specification: String = "1.2",
        capabilities: [String] = ["actions", "body", "body-markup"], firstCall: FirstCall = .isAnswered
    ) throws {
        environment = ["DBUS_SESSION_BUS_ADDRESS": bus.address, "FIRST_CALL": firstCall.rawValue]
        process = try ChildProcess(
            "/usr/bin/python3", ["-c", Self.script, name, specification] + capabilities, environment: environment)
        guard try process.firstLine() == "ready" else { throw FixtureFailure("\(name) did not take its name") }
    }

    func stop() { process.stop() }

    /// Waits for the next call.
    func nextCall() throws -> Call { try JSONDecoder().decode(Call.self, from: Data(process.firstLine().utf8)) }

    /// Broadcasts that the user pressed a button.
    func press(_ id: UInt32, _ key: String) throws { try ask("Press", "\(id)", "'\(key)'") }

    /// Starts a process that prints each signal of an interface on a line.
    func watch(_ interface: String) throws -> ChildProcess {
        let script = #"""
            import sys, dbus
            from dbus.mainloop.glib import DBusGMainLoop
            from gi.repository import Gio, GLib
            bus = Gio.bus_get_sync(Gio.BusType.SESSION)
            bus.signal_subscribe(None, sys.argv[1], None, None, None, 0,
                lambda *a: print(a[5].print_(True).replace("\n", " "), flush=True))
            bus.call_sync("org.freedesktop.DBus", "/", "org.freedesktop.DBus", "GetId", None, None, 0, -1)
            print("ready", flush=True)
            GLib.MainLoop().run()
            """#
        let watch = try ChildProcess("/usr/bin/python3", ["-c", script, interface], environment: environment)
        guard try watch.firstLine() == "ready" else { throw FixtureFailure("nobody watches") }
        return watch
    }

    /// Broadcasts the text that the user typed.
    func reply(_ id: UInt32, _ text: String) throws { try ask("Reply", "\(id)", "'\(text)'") }

    /// Switches do-not-disturb on or off.
    func inhibit(_ isOn: Bool) throws { try ask("Inhibit", isOn ? "true" : "false") }

    /// Before the server answers the next replacement, it sends three signals about the old content: the user pressed a button,
    /// replied, and closed the notification.
    func closeBeforeReply() throws { try ask("LeaveBeforeAnswer") }

    /// Broadcasts that the user closed a notification.
    func dismiss(_ id: UInt32) throws { try ask("Dismiss", "\(id)") }

    private func ask(_ method: String, _ arguments: String...) throws {
        try ChildProcess.run(
            "gdbus",
            [
                "call", "--session", "-d", "org.freedesktop.Notifications", "-o", "/org/freedesktop/Notifications", "-m",
                "test.Habits.\(method)",
            ] + arguments, environment: environment)
    }

    private static let script = #"""
        import json, os, sys, threading, dbus, dbus.service
        from dbus.mainloop.glib import DBusGMainLoop
        from gi.repository import GLib

        DBusGMainLoop(set_as_default=True)
        N = "org.freedesktop.Notifications"
        name, specification, capabilities = sys.argv[1], sys.argv[2], sys.argv[3:]

        class Server(dbus.service.Object):
            last = 0
            fate = os.environ["FIRST_CALL"]
            @dbus.service.method(N, in_signature="", out_signature="ssss")
            def GetServerInformation(self): return (name, "test", "1", specification)
            inhibited = False
            @dbus.service.method(dbus.PROPERTIES_IFACE, in_signature="ss", out_signature="v")
            def Get(self, interface, name): return self.inhibited
            @dbus.service.signal(dbus.PROPERTIES_IFACE, signature="sa{sv}as")
            def PropertiesChanged(self, interface, changed, invalidated): pass
            @dbus.service.method("test.Habits", in_signature="b", out_signature="")
            def Inhibit(self, on):
                self.inhibited = on
                self.PropertiesChanged(N, {"Inhibited": on}, [])
            @dbus.service.method(N, in_signature="", out_signature="as")
            def GetCapabilities(self): return dbus.Array(capabilities, signature="s")
            @dbus.service.method(N, in_signature="susssasa{sv}i", out_signature="u")
            def Notify(self, app, replaces, icon, title, body, actions, hints, timeout):
                fate, self.fate = self.fate, "isAnswered"
                if fate == "isRefused":
                    raise dbus.DBusException("too many", name=N + ".Error.ExcessNotificationGeneration")
                if fate == "kills": os._exit(1)
                if fate == "isLost": threading.Event().wait()
                self.last = int(replaces) or self.last + 1
                hints = {key: "pixels" if len(str(value)) > 200 else str(value) for key, value in hints.items()}
                if self.leaves and replaces:
                    self.leaves = False
                    self.Press(replaces, "photo")
                    self.NotificationReplied(replaces, "Wild")
                    self.NotificationClosed(replaces, 2)
                print(json.dumps({"replaces": int(replaces), "icon": icon, "title": title, "body": body, "actions": actions,
                                  "hints": hints, "timeout": int(timeout)}), flush=True)
                return self.last
            @dbus.service.method(N, in_signature="u", out_signature="")
            def CloseNotification(self, number): self.NotificationClosed(number, 3)
            @dbus.service.signal(N, signature="us")
            def ActionInvoked(self, number, key): pass
            @dbus.service.signal(N, signature="us")
            def ActivationToken(self, number, token): pass
            @dbus.service.signal(N, signature="uu")
            def NotificationClosed(self, number, reason): pass
            @dbus.service.method("test.Habits", in_signature="us", out_signature="")
            def Press(self, number, key):
                self.ActivationToken(number, "token-1")
                self.ActionInvoked(number, key)
            @dbus.service.signal(N, signature="us")
            def NotificationReplied(self, number, text): pass
            @dbus.service.method("test.Habits", in_signature="us", out_signature="")
            def Reply(self, number, text): self.NotificationReplied(number, text)
            leaves = False
            @dbus.service.method("test.Habits", in_signature="", out_signature="")
            def LeaveBeforeAnswer(self): self.leaves = True
            @dbus.service.method("test.Habits", in_signature="u", out_signature="")
            def Dismiss(self, number): self.NotificationClosed(number, 2)

        bus = dbus.SessionBus()
        server = Server(bus, "/org/freedesktop/Notifications")
        taken = dbus.service.BusName(N, bus)
        print("ready", flush=True)
        GLib.MainLoop().run()
        """#
}
