import BackgroundCommands
import Foundation

/// The texts that the desktop and the shell show about Stormy.
enum StormyDesktop {
    static let integration = DesktopIntegration(
        summary: "Checks for storms and uploads your photos of them",
        details: """
            Stormy checks the forecast of your places every day at noon and shows a notification if a storm is expected. Stormy \
            uploads your photos of the storm, also after network failures and restarts.

            Stormy removes the location from uploaded photos, if you do not choose to keep the location.
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
