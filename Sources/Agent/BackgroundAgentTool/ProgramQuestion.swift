import BackgroundAgent

/// What other programs, and the agent itself, ask of this one: one question, one answer, no agent.
enum ProgramQuestion {
    /// Answers on standard output.
    ///
    /// - Returns: the exit code; `nil`: it is no such question.
    static func answer(_ arguments: [String]) -> Int32? {
        switch (arguments.first, arguments.count) {
        case ("--check", 3) where arguments[1] == "--app": ProgramFile.check(appIdentifier: arguments[2])
        case ("--examine-notifications", _): DesktopExamination.printNotifications(busAddress: arguments.dropFirst().first)
        case ("--examine-conditions", 1): DesktopExamination.printConditions()
        case (PictureReading.option, 2): PictureReading.printPixels(of: arguments[1])
        default: nil
        }
    }
}
