import DesktopServices
import Foundation
import UserUnits

/// A user manager that is called through its socket. No process is started for a call.
struct UserManagerOnBus: UserManager {
    let bus: UserManagerBus

    func reload() throws(UserUnits.Failure) {
        try reply { () throws(UserManagerBus.Trouble) in try bus.reload() }
    }

    func start(_ unit: String, waits: Bool) throws(UserUnits.Failure) {
        try reply { () throws(UserManagerBus.Trouble) in try bus.run(.start, unit, waits: waits) }
    }

    func restart(_ unit: String, waits: Bool) throws(UserUnits.Failure) {
        try reply { () throws(UserManagerBus.Trouble) in try bus.run(.restart, unit, waits: waits) }
    }

    func stop(_ unit: String) throws(UserUnits.Failure) {
        try reply { () throws(UserManagerBus.Trouble) in try bus.run(.stop, unit, waits: false) }
    }

    func property(_ name: String, of unit: String) throws(UserUnits.Failure) -> String {
        try reply { () throws(UserManagerBus.Trouble) in try bus.text(name, of: unit) }
    }

    func nextElapse(of timer: String) throws(UserUnits.Failure) -> Date? {
        try reply { () throws(UserManagerBus.Trouble) in try bus.nextElapse(of: timer) }
    }

    func files(of unit: String) throws(UserUnits.Failure) -> [String] {
        try reply { () throws(UserManagerBus.Trouble) in try bus.files(of: unit) }
    }

    func startedUnit(of timer: String) throws(UserUnits.Failure) -> String {
        try reply { () throws(UserManagerBus.Trouble) in try bus.startedUnit(of: timer) }
    }

    private func reply<Value>(_ ask: () throws(UserManagerBus.Trouble) -> Value) throws(UserUnits.Failure) -> Value {
        do throws(UserManagerBus.Trouble) { return try ask() } catch { throw UserUnits.Failure(error.words) }
    }
}
