import BackgroundAgent

/// The commands by which other programs and the agent call this program. A command prints a single result and does not start an
/// agent.
enum OneShotCommand {
    /// Prints the result on standard output.
    ///
    /// - Returns: The exit code, or `nil` if the arguments do not contain such a command.
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
