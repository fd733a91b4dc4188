import BackgroundRuntime
import BackgroundScheduling

/// Network, power and sleep: what work may have to wait for.
struct ConditionsExamination: Examination {
    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        guard case .success(let agent) = AgentStarter.findAgent(environment: app.environment) else { return [] }
        switch app.desktop.conditions(agent, app) {
        case .success(let report) where report.isSystemBusSilent == true:
            let silent = DoctorFinding(
                "system-bus", .warning,
                "the system bus does not answer: what it tells of network, power and sleep is heard as soon as it does")
            return [silent, network(report.conditions), power(report.conditions)]
        case .success(let report):
            return [network(report.conditions), power(report.conditions), sleep(report)]
                + WakeExamination.findings(app, report.machine)
        // Said of the notifications, too, by the same program.
        case .failure(let trouble): return [DoctorFinding("network", .failed, "\(agent) does not work: \(trouble.words)")]
        }
    }

    private func network(_ conditions: DesktopConditions) -> DoctorFinding {
        guard conditions.isNetworkAvailable else {
            return DoctorFinding("network", .warning, "there is none: checks and transfers wait until one is back")
        }
        let kind = conditions.isNetworkMetered ? "A metered one is there: what asks for a free one waits." : "One is there."
        return DoctorFinding("network", .ok, kind)
    }

    private func power(_ conditions: DesktopConditions) -> DoctorFinding {
        if conditions.isSavingPower {
            return DoctorFinding("power", .warning, "power is saved on battery: only what may run then runs")
        }
        return DoctorFinding(
            "power", .ok, conditions.isOnExternalPower ? "External power." : "On battery: what asks for external power waits.")
    }

    private func sleep(_ report: ConditionsReport) -> DoctorFinding {
        DoctorFinding(
            "sleep", .ok,
            report.hearsOfSleep
                ? "What was due while the machine slept runs when it wakes."
                : "No service tells when the machine wakes; the agent sees it by its clocks.")
    }
}
