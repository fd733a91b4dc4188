import BackgroundLedger
import FaultyServer
import Foundation

// Events of the host: its clock, time zone, sleep, power, disk and notification server.
extension Scenario {
    private static let hour = 3_600.0
    private static let day = 24 * hour
    private static let noCheck = "no check ran; 0 forecast requests; 0 storm notifications"
    private static let today = "the next check is today at 12:00"
    private static let nextTomorrow = "\(oneCheck); the next check is tomorrow at 12:00"
    private static let corrected = "\(nextTomorrow); the user was notified of the mistake once"
    private static let oneCheck = "check completed; 1 forecast request; 1 storm notification"

    static let schedules: [Scenario] = [
        Scenario(
            .scheduled, "nothing happens", promise: "The check waits for noon.",
            expects: "\(noCheck); \(today)"
        ) { _ in },
        Scenario(
            .scheduled, "suspended over noon", promise: "The check runs once, when the machine wakes.",
            expects: nextTomorrow
        ) {
            try $0.control.suspend(2 * hour)
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "suspended over noon, then without a network",
            promise: "The check waits for the network, and then runs.",
            expects: nextTomorrow
        ) {
            try $0.control.set { machine in
                machine.conditions.isNetworkAvailable = false
                machine.clockOffset += 2 * hour
                machine.slept += 2 * hour
            }
            try $0.sync()
            guard try $0.ledger({ try $0.history(limit: 5).isEmpty }) else {
                throw Rehearsal.Stuck(description: "the check did not wait for the network")
            }
            try $0.control.set { $0.conditions.isNetworkAvailable = true }
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "the clock is set forward over noon", promise: "The check runs, and the next check is tomorrow.",
            expects: nextTomorrow
        ) {
            try $0.control.stepClock(2 * hour)
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "the clock is set forward over noon and back",
            promise: "The check that was due at noon does not run a second time.",
            expects: nextTomorrow
        ) {
            try $0.control.stepClock(2 * hour)
            try $0.waitForCheck()
            try $0.control.stepClock(-2 * hour)
        },
        Scenario(
            .scheduled, "the clock is set forward a year and back",
            promise: "The check of today runs, although the clock was wrong by a year for some time.",
            expects: "\(oneCheck); \(today)"
        ) {
            try $0.moveToForecastDay(in: 365 * day) { try $0.control.stepClock(365 * day) }
            try $0.control.stepClock(-365 * day)
            try $0.sync()
        },
        Scenario(
            .scheduled, "switched off for a week", promise: "The check runs once, and the next check is scheduled for noon.",
            expects: "\(oneCheck); \(today)"
        ) {
            try $0.send(SIGTERM, to: .agent)
            try $0.moveToForecastDay(in: 7 * day) {
                try $0.control.stepClock(7 * day)
                try $0.logIn()
            }
        },
        Scenario(
            .scheduled, "the configuration has a mistake at noon",
            promise: "The user is notified of the mistake once. The check runs when the user has corrected the file.",
            // The number of crashes depends on how often the agent repeats the check before the mistake is corrected.
            expects: "check crashed, \(corrected)", "check crashed, check crashed, \(corrected)",
            "check crashed, check crashed, check crashed, \(corrected)", also: { try $0.seenOfTrouble() }
        ) {
            let mend = try $0.spoilConfiguration()
            try $0.control.stepClock(2 * hour)
            try $0.waitForCheck(.crashed)
            try $0.waitForTrouble()
            try mend()
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "the clock is set back", promise: "The check waits until the changed clock shows noon.",
            expects: "\(noCheck); \(today)"
        ) { try $0.control.stepClock(-3 * hour) },
        Scenario(
            .scheduled, "the user travels east", promise: "The next check is at noon in the new time zone.",
            expects: "\(noCheck); the next check is tomorrow at 12:00"
        ) { try $0.control.set { $0.zone = "Asia/Tokyo" } },
        Scenario(
            .scheduled, "the user travels west", promise: "The next check is at noon in the new time zone.",
            expects: "\(noCheck); \(today)"
        ) { try $0.control.set { $0.zone = "Atlantic/Reykjavik" } },
        Scenario(
            .scheduled, "logged out over noon", promise: "The missed check runs once after the next login.",
            expects: nextTomorrow
        ) {
            try $0.send(SIGTERM, to: .agent)
            try $0.control.stepClock(2 * hour)
            try $0.logIn()
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "no agent runs over noon", promise: "The missed check runs once when an agent starts again.",
            expects: nextTomorrow
        ) {
            try $0.send(SIGKILL, to: .agent)
            try $0.control.stepClock(2 * hour)
            try $0.logIn()
            try $0.waitForCheck()
        },
        Scenario(
            .scheduled, "unscheduled", promise: "No check is scheduled, and no check runs at noon.",
            expects: "\(noCheck); no check is scheduled"
        ) {
            try $0.verb("unschedule")
            try $0.control.stepClock(2 * hour)
            try $0.waitForAgent()
        },
    ]

    static let machines: [Scenario] = [
        Scenario(
            .check, "suspended", promise: "The check continues after the sleep, because time in sleep does not count.",
            expects: oneCheck
        ) {
            try $0.control.suspend(hour)
            try $0.sync()
            $0.continueResponses()
        },
        Scenario(
            .check, "the clock is set forward",
            promise: "The check continues, because its time limit is a duration and not a time of day.", expects: oneCheck
        ) {
            try $0.control.stepClock(hour)
            try $0.sync()
            $0.continueResponses()
        },
        Scenario(
            .check, "the clock is set back",
            promise: "The check continues, because its time limit is a duration and not a time of day.", expects: oneCheck
        ) {
            try $0.control.stepClock(-hour)
            try $0.sync()
            $0.continueResponses()
        },
        Scenario(
            .check, "no notification server runs",
            promise: "The notification waits for a server, and is shown when a server starts.",
            expects: oneCheck
        ) {
            try $0.control.set { $0.hasNotificationServer = false }
            $0.continueResponses()
            try $0.waitForCheck()
            try $0.waitForNotice(.pending)
            try $0.control.set { $0.hasNotificationServer = true }
            try $0.waitForNotice(.delivered)
        },
        Scenario(
            .handedOver, "suspended", promise: "The connection still works after the sleep, and the rest of the data arrives.",
            expects: "check expired, delivery completed; 1 forecast request; 1 storm notification"
        ) {
            try $0.control.suspend(hour)
            try $0.sync()
            $0.continueResponses()
        },
        Scenario(
            .download, "suspended", promise: "The connection still works after the sleep, and the rest of the data arrives.",
            expects: "download completed; version one of the file is complete; the agent sent 1 request"
        ) {
            try $0.control.suspend(hour)
            try $0.sync()
            $0.continueResponses()
        },
        Scenario(
            .download, "the clock is set back a day", promise: "The download continues, because it does not depend on the date.",
            expects: "download completed; version one of the file is complete; the agent sent 1 request"
        ) {
            try $0.control.stepClock(-24 * hour)
            try $0.sync()
            $0.continueResponses()
        },
        Scenario(
            .download, "the disk is full",
            promise: "The download keeps its partial file, and continues when the disk has free space.",
            expects: "download completed; version one of the file is complete; "
                + "after the interruption the agent requested the missing bytes"
        ) {
            try $0.control.set { $0.isDiskFull = true }
            $0.continueResponses()
            _ = try $0.wait("a transfer that waits for space on the disk") { try $0.transfers().first { $0.state == .waiting } }
            try $0.control.set { $0.isDiskFull = false }
            // The transfer is tried again after a minute.
            try $0.control.suspend(61)
        },
        Scenario(
            .upload, "suspended",
            promise: "The server closes the connection during the sleep. The photo is sent again and stored once.",
            expects: "\(sentTwice); the server closed the connection, then the server responded",
            also: { $0.seenOfSendings() }
        ) {
            try $0.control.suspend(hour)
            try $0.sync()
            $0.dropConnections()
        },
        Scenario(
            .upload, "switched off for a week",
            promise: "A week without power does not end the upload. The photo is sent and stored once.",
            expects: sentTwice
        ) {
            try $0.send(SIGTERM, to: .agent)
            $0.dropConnections()
            try $0.control.stepClock(8 * day)
            try $0.logIn()
        },
        Scenario(
            .upload, "the queued copy cannot be opened for a moment",
            promise: "The upload waits and shows the reason. Then the photo is sent and stored once.",
            expects: sentOnce,
            begin: {
                try $0.control.set { $0.hasNoDescriptors = true }
                try $0.beginUpload(stalls: false)
                try $0.waitForDisk("Too many open files")
            }
        ) {
            try $0.control.set { $0.hasNoDescriptors = false }
            // The transfer is tried again after a minute.
            try $0.control.suspend(61)
        },
        Scenario(
            .upload, "no external power",
            promise: "With the option `--when charging`, the photo waits. The photo is sent when external power is connected.",
            expects: sentOnce,
            begin: {
                try $0.control.set { $0.conditions.isOnExternalPower = false }
                try $0.beginUpload(stalls: false, "--when", "charging")
                try $0.sync()
                guard $0.photos.files.isEmpty else { throw Rehearsal.Stuck(description: "the photo was not held") }
            }
        ) {
            try $0.control.set { $0.conditions.isOnExternalPower = true }
            _ = try $0.wait("the upload of the photo") { try $0.transfers().first { $0.state == .completed } }
        },
    ]
}
