import BackgroundLedger
import FaultyServer
import Foundation

// What happens to the host: its clock, its zone, its sleep, its power, its disk, its notification server.
extension Scenario {
    private static let hour = 3_600.0
    private static let day = 24 * hour
    private static let mended = "\(oneCheck); next tomorrow at 12:00; told once of the mistake"
    private static let oneCheck = "check completed; 1 request; 1 storm told"

    static let schedules: [Scenario] = [
        Scenario(
            .scheduled, "nothing happens", promise: "It waits for noon.",
            expects: "no check; 0 requests; 0 storms told; next today at 12:00"
        ) { _ in },
        Scenario(
            .scheduled, "suspended over noon", promise: "The check runs when the machine wakes, once.",
            expects: "\(oneCheck); next tomorrow at 12:00"
        ) {
            try $0.control.suspend(2 * hour)
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "suspended over noon, without a network after it",
            promise: "The check waits for the network, and runs with it.",
            expects: "\(oneCheck); next tomorrow at 12:00"
        ) {
            try $0.control.set { machine in
                machine.conditions.isNetworkAvailable = false
                machine.clockOffset += 2 * hour
                machine.slept += 2 * hour
            }
            try $0.sync()
            guard try $0.ledger({ try $0.history(limit: 5).isEmpty }) else {
                throw Rehearsal.Stuck(description: "it did not wait for the network")
            }
            try $0.control.set { $0.conditions.isNetworkAvailable = true }
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "the clock is set forward over noon", promise: "The check runs, and is planned for tomorrow.",
            expects: "\(oneCheck); next tomorrow at 12:00"
        ) {
            try $0.control.stepClock(2 * hour)
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "the clock is set forward over noon and back", promise: "No noon is served twice.",
            expects: "\(oneCheck); next tomorrow at 12:00"
        ) {
            try $0.control.stepClock(2 * hour)
            try $0.waitForCheck()
            try $0.control.stepClock(-2 * hour)
        },
        Scenario(
            .scheduled, "the clock is set forward a year and back",
            promise: "The year that was not keeps no noon from being served.",
            expects: "\(oneCheck); next today at 12:00"
        ) {
            try $0.comeTo(in: 365 * day) { try $0.control.stepClock(365 * day) }
            try $0.control.stepClock(-365 * day)
            try $0.sync()
        },
        Scenario(
            .scheduled, "switched off for a week", promise: "The check runs once, and the next noon stands.",
            expects: "\(oneCheck); next today at 12:00"
        ) {
            try $0.send(SIGTERM, to: .agent)
            try $0.comeTo(in: 7 * day) {
                try $0.control.stepClock(7 * day)
                try $0.logIn()
            }
        },
        Scenario(
            .scheduled, "the configuration has a mistake at noon",
            promise: "The person is told once; the check is made up for when the file is mended, and is not done until then.",
            // As often as it is tried meanwhile.
            expects: "check crashed, \(mended)", "check crashed, check crashed, \(mended)",
            "check crashed, check crashed, check crashed, \(mended)", also: { try $0.seenOfTrouble() }
        ) {
            let mend = try $0.spoilConfiguration()
            try $0.control.stepClock(2 * hour)
            try $0.waitForCheck(.crashed)
            try $0.waitForTrouble()
            try mend()
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "the clock is set back", promise: "It waits for noon by the clock that there is.",
            expects: "no check; 0 requests; 0 storms told; next today at 12:00"
        ) { try $0.control.stepClock(-3 * hour) },
        Scenario(
            .scheduled, "the person travels east", promise: "The next noon is that of the new zone.",
            expects: "no check; 0 requests; 0 storms told; next tomorrow at 12:00"
        ) { try $0.control.set { $0.zone = "Asia/Tokyo" } },
        Scenario(
            .scheduled, "the person travels west", promise: "The next noon is that of the new zone.",
            expects: "no check; 0 requests; 0 storms told; next today at 12:00"
        ) { try $0.control.set { $0.zone = "Atlantic/Reykjavik" } },
        Scenario(
            .scheduled, "logged out over noon", promise: "The missed check runs once after the next login.",
            expects: "\(oneCheck); next tomorrow at 12:00"
        ) {
            try $0.send(SIGTERM, to: .agent)
            try $0.control.stepClock(2 * hour)
            try $0.logIn()
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "the agent dead over noon", promise: "The missed check runs once when an agent is back.",
            expects: "\(oneCheck); next tomorrow at 12:00"
        ) {
            try $0.send(SIGKILL, to: .agent)
            try $0.control.stepClock(2 * hour)
            try $0.logIn()
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "unscheduled", promise: "Nothing is planned any more, and nothing runs at noon.",
            expects: "no check; 0 requests; 0 storms told; none is planned"
        ) {
            try $0.verb("unschedule")
            try $0.control.stepClock(2 * hour)
            try $0.look()
        },
    ]

    static let machines: [Scenario] = [
        Scenario(
            .check, "suspended", promise: "Sleep takes nothing of its time: it goes on afterwards.", expects: oneCheck
        ) {
            try $0.control.suspend(hour)
            try $0.sync()
            $0.go()
        },
        Scenario(
            .check, "the clock is set forward", promise: "Its time is a span, not a moment: it goes on.", expects: oneCheck
        ) {
            try $0.control.stepClock(hour)
            try $0.sync()
            $0.go()
        },
        Scenario(
            .check, "the clock is set back", promise: "Its time is a span, not a moment: it goes on.", expects: oneCheck
        ) {
            try $0.control.stepClock(-hour)
            try $0.sync()
            $0.go()
        },
        Scenario(
            .check, "the notification server is gone", promise: "The storm waits for a server, and is shown once there is one.",
            expects: oneCheck
        ) {
            try $0.control.set { $0.hasNotificationServer = false }
            $0.go()
            try $0.waitForCheck()
            try $0.waitForNotice(.pending)
            try $0.control.set { $0.hasNotificationServer = true }
            try $0.waitForNotice(.delivered)
        },
        Scenario(
            .handedOver, "suspended", promise: "Its connection still stands afterwards, and brings the rest.",
            expects: "check expired, delivery completed; 1 request; 1 storm told"
        ) {
            try $0.control.suspend(hour)
            try $0.sync()
            $0.go()
        },
        Scenario(
            .download, "suspended", promise: "Its connection still stands afterwards, and brings the rest.",
            expects: "completed; version one, whole; asked once"
        ) {
            try $0.control.suspend(hour)
            try $0.sync()
            $0.go()
        },
        Scenario(
            .download, "the clock is set back a day", promise: "It goes on: nothing of it depends on the day.",
            expects: "completed; version one, whole; asked once"
        ) {
            try $0.control.stepClock(-24 * hour)
            try $0.sync()
            $0.go()
        },
        Scenario(
            .download, "the disk is full", promise: "It waits with what is here, and goes on when there is room.",
            expects: "completed; version one, whole; then asked for the rest"
        ) {
            try $0.control.set { $0.isDiskFull = true }
            $0.go()
            _ = try $0.wait("the disk to be too small") { try $0.transfers().first { $0.state == .waiting } }
            try $0.control.set { $0.isDiskFull = false }
            // A minute later.
            try $0.control.suspend(61)
        },
        Scenario(
            .upload, "suspended", promise: "The server drops the connection in its sleep: it is sent again, and is there once.",
            expects: "completed; storm.bmp whole; sent twice; serverClosed, then answered", also: { $0.seenOfSendings() }
        ) {
            try $0.control.suspend(hour)
            try $0.sync()
            $0.dropConnections()
        },
        Scenario(
            .upload, "switched off for a week",
            promise: "A week in which nobody could try gives nothing up: it is sent, and is there once.",
            expects: "completed; storm.bmp whole; sent twice"
        ) {
            try $0.send(SIGTERM, to: .agent)
            $0.dropConnections()
            try $0.control.stepClock(8 * day)
            try $0.logIn()
        },
        Scenario(
            .upload, "its copy cannot be opened for a moment",
            promise: "It waits, and says why; then it is sent, and is there once.",
            expects: "completed; storm.bmp whole; sent once",
            begin: {
                try $0.control.set { $0.hasNoDescriptors = true }
                try $0.beginUpload(stalls: false)
                try $0.waitForDisk("Too many open files")
            }
        ) {
            try $0.control.set { $0.hasNoDescriptors = false }
            // A minute later.
            try $0.control.suspend(61)
        },
        Scenario(
            .upload, "power is awaited", promise: "`--when charging` holds it; it is sent when power comes.",
            expects: "completed; storm.bmp whole; sent once",
            begin: {
                try $0.control.set { $0.conditions.isOnExternalPower = false }
                try $0.beginUpload(stalls: false, "--when", "charging")
                try $0.sync()
                guard $0.photos.files.isEmpty else { throw Rehearsal.Stuck(description: "it was not held") }
            }
        ) {
            try $0.control.set { $0.conditions.isOnExternalPower = true }
            _ = try $0.wait("the photo to be sent") { try $0.transfers().first { $0.state == .completed } }
        },
    ]
}
