import BackgroundCommands
import Foundation

/// The texts that the desktop and the shell show about Stormy.
enum StormyDesktop {
    static let integration = DesktopIntegration(
        summary: "Checks for storms and uploads your photos of them",
        details: """
            Stormy looks at the weather at your places every day at noon, tells you when a storm is expected, and sends the photos that \
            you take of it, whatever becomes of the network in between.

            Where a photo was taken is removed from what is sent, unless you say otherwise.
            """,
        commands: StormyRoot.self, icon: Data(PackageResources.Stormy_svg), categories: ["Utility"],
        actions: [
            DesktopIntegration.Action(identifier: "check", name: "Check now", arguments: ["check", "--tell"]),
            DesktopIntegration.Action(identifier: "upload", name: "Upload photos…", arguments: ["upload", "--choose"]),
        ],
        mimeTypes: ["image/jpeg", "image/png", "image/webp", "image/tiff", "image/heif", "image/avif"],
        openArguments: ["upload", "--choose"], license: "Apache-2.0",
        componentIdentifier: "io.github.stormy.Stormy")
}
