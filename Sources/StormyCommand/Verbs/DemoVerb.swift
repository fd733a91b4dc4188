import ArgumentParser
import Foundation

struct DemoVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Shows the whole main job in under 30 s.", discussion: "Example:\n  stormy demo")

    func run() async throws {}
}
