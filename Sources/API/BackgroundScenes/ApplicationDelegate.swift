import BackgroundRuntime
import BackgroundTransfer
import Foundation

/// The three methods of `UIApplicationDelegate` that background work needs, without UIKit.
///
/// Mark the type `@main` if the delegate is the entry point of the iOS app. Otherwise add the delegate to an ``App`` with
/// ``ApplicationDelegateAdaptor``.
///
/// Differs from Apple: the methods have no `UIApplication` object and no options, and the other methods of `UIApplicationDelegate`
/// do not exist. A process that the agent launched is never in the foreground.
@MainActor
public protocol ApplicationDelegate: AnyObject {
    init()

    /// Registers handlers. Called first in every process of the app: a process that a user started, and a process that the agent
    /// launched. The default implementation does nothing.
    ///
    /// Differs from Apple: the method returns no value, because no URL is opened that the app could refuse.
    func applicationDidFinishLaunching()

    /// Schedules the next work. Called once in a process that a user started, when the app's ``Worker`` scenes have returned, or at
    /// once if the app has no ``Worker`` scene. Never called in a process that the agent launched. The process continues until all
    /// work that the app began is stored, also work of unstructured tasks. If the app has no ``Worker`` scene, the process
    /// continues until the app has begun no work for half a second. The process also waits for requests that it sends itself, so
    /// that their handlers are called. This wait takes at most `BackgroundSettings.continuation`. The default implementation does
    /// nothing.
    func applicationDidEnterBackground()
}

/// A delegate that creates its background sessions only when their events arrive.
///
/// A session that the delegate creates in `applicationDidFinishLaunching` does not need this protocol. An app with a scene that has
/// `.backgroundTask(.urlSession(…))` does not need this protocol either.
@MainActor
public protocol BackgroundSessionApplicationDelegate: ApplicationDelegate {
    /// Handles a launch for ended transfers of a background session. The method creates the session with its delegate. The app must
    /// call the completion handler after `urlSessionDidFinishEvents(forBackgroundURLSession:)`. The launch ends when the app calls
    /// the handler.
    ///
    /// Differs from Apple: the method is called only in processes that the agent launched. A process that a user started creates
    /// its sessions itself, and these sessions receive the events.
    func application(
        handleEventsForBackgroundURLSession identifier: String, completionHandler: @escaping @Sendable () -> Void)
}

extension ApplicationDelegate {
    /// Does nothing.
    public func applicationDidFinishLaunching() {}

    /// Does nothing.
    public func applicationDidEnterBackground() {}

    /// Runs an app that has no scenes. A process that the agent started runs the launch. A process that a user started calls
    /// `applicationDidFinishLaunching` and `applicationDidEnterBackground`, and then exits.
    public static func main() {
        // The manifest is read before the app's code runs, because this code may read the bundle identifier.
        _ = AppManifest.current
        AppProcess.begin(Self()).run()
    }

    /// Registers the app's background work on a test host, in the same way as a launched process.
    package static func enterStage() { AppProcess.begin(Self()).enterStage() }

    func finishLaunching() {
        if let self = self as? any BackgroundSessionApplicationDelegate {
            BackgroundTransfers.handleEventsForBackgroundURLSession { identifier, completionHandler in
                self.application(handleEventsForBackgroundURLSession: identifier, completionHandler: completionHandler)
            }
        }
        applicationDidFinishLaunching()
    }
}

/// A property wrapper that adds a delegate to an ``App``, like SwiftUI's `UIApplicationDelegateAdaptor`:
/// `@ApplicationDelegateAdaptor(AppDelegate.self) private var delegate`.
///
/// The delegate is created with the app, and `applicationDidFinishLaunching` is called before the app's scenes are collected.
///
/// Differs from Apple: an `ObservableObject` is not supported as a delegate, and the delegate is not in the environment.
@MainActor
@propertyWrapper
public struct ApplicationDelegateAdaptor<Delegate: ApplicationDelegate> {
    /// The app's delegate.
    public let wrappedValue: Delegate

    /// - Parameter type: the type of the delegate. An app has one delegate.
    /// - Precondition: The app has no other delegate adaptor.
    public init(_ type: Delegate.Type = Delegate.self) {
        precondition(MountedDelegate.current == nil, "an app can have only one delegate, and \(type) is a second delegate")
        wrappedValue = Delegate()
        MountedDelegate.current = wrappedValue
    }
}

/// The delegate that an app adds while the app is created.
@MainActor
enum MountedDelegate {
    static var current: (any ApplicationDelegate)?
}
