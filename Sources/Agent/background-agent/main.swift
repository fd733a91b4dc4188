import BackgroundAgentTool
import Foundation

exit(BackgroundAgentTool.main(Array(CommandLine.arguments.dropFirst())))
