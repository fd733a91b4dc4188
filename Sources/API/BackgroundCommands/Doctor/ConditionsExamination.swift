import BackgroundRuntime
import BackgroundScheduling

/// Examines the conditions that work may wait for: network, power and sleep.
struct ConditionsExamination: Examination {
    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        guard case .success(let agent) = AgentStarter.findAgent(environment: app.environment) else { return [] }
        switch app.desktop.conditions(agent, app) {
        case .success(let report) where report.isSystemBusSilent == true:
            let silent = DoctorFinding(
                "system-bus", .warning,
                "the system bus does not respond, so network, power and sleep are unknown")
            return [silent, network(report.conditions), power(report.conditions)]
        case .success(let report):
            return [network(report.conditions), power(report.conditions), sleep(report)]
                + WakeExamination.findings(app, report.machine)
        // This finding suggests no fix, because the examination of notifications runs the same program and reports the same
        // problem.
        case .failure(let trouble): return [DoctorFinding("network", .failed, "\(agent) does not work: \(trouble.words)")]
        }
    }

    private func network(_ conditions: DesktopConditions) -> DoctorFinding {
        guard conditions.isNetworkAvailable else {
            return DoctorFinding("network", .warning, "no network is available, so checks and transfers wait for a network")
        }
        let kind =
            conditions.isNetworkMetered
            ? "The network is metered, so work that requires an unmetered network waits." : "A network is available."
        return DoctorFinding("network", .ok, kind)
    }

    private func power(_ conditions: DesktopConditions) -> DoctorFinding {
        if conditions.isSavingPower {
            return DoctorFinding(
                "power", .warning, "power saving is on, so work that must not run during power saving waits")
        }
        return DoctorFinding(
            "power", .ok,
            conditions.isOnExternalPower
                ? "This computer runs on external power."
                : "This computer runs on battery, so work that requires external power waits.")
    }

    private func sleep(_ report: ConditionsReport) -> DoctorFinding {
        DoctorFinding(
            "sleep", .ok,
            report.hearsOfSleep
                ? "Work that was due during sleep runs when the machine wakes."
                : "No service reports when the machine wakes. The agent detects a wake from the system clocks.")
    }
}
