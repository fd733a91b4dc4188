import BackgroundRuntime
import BackgroundTransfer
import Foundation

/// The part of `UIApplicationDelegate` that exists without UIKit: the three events that background work needs.
///
/// Mark the type `@main` if the iOS app's delegate was its entry point, or mount it in an ``App`` with
/// ``ApplicationDelegateAdaptor``.
///
/// Differs from Apple: there is no `UIApplication` object, no options, no scenes to connect, and none of the other events. A
/// process that the agent launched is never in the foreground.
@MainActor
public protocol ApplicationDelegate: AnyObject {
    init()

    /// Registers handlers. Called first in every process of the app: a process that a user started, and every launch. The default
    /// implementation does nothing.
    ///
    /// Differs from Apple: the method returns no value, because the app has no URL to refuse.
    func applicationDidFinishLaunching()

    /// Schedules the next work. Called once in a process that a user started, when the app's ``Worker`` scenes have returned, or
    /// at once if the app has no worker. Never called in a launch. The process continues until everything that the app began is
    /// durable, also in unstructured tasks. Without a ``Worker``, the process continues until the app has begun nothing for half
    /// a second. The process also waits for requests that it makes itself, for `BackgroundSettings.continuation` at most, so that
    /// their handlers are called. The default implementation does nothing.
    func applicationDidEnterBackground()
}

/// A delegate that creates its background sessions only when their events arrive.
///
/// A session that the delegate creates in `applicationDidFinishLaunching` does not need this protocol. A scene with
/// `.backgroundTask(.urlSession(…))` does not need it either.
@MainActor
public protocol BackgroundSessionApplicationDelegate: ApplicationDelegate {
    /// Handles a launch because transfers of a background session have ended. The method creates the session with its delegate.
    /// The app must call the completion handler after `urlSessionDidFinishEvents(forBackgroundURLSession:)`; the launch ends with
    /// that call.
    ///
    /// Differs from Apple: called only in launches. A process that a user started creates its sessions itself, and they receive
    /// the events.
    func application(
        handleEventsForBackgroundURLSession identifier: String, completionHandler: @escaping @Sendable () -> Void)
}

extension ApplicationDelegate {
    /// Does nothing.
    public func applicationDidFinishLaunching() {}

    /// Does nothing.
    public func applicationDidEnterBackground() {}

    /// Runs an app that has no scenes. A process that the agent started runs the launch. A process that a user started calls
    /// `applicationDidFinishLaunching` and `applicationDidEnterBackground`, and then ends.
    public static func main() {
        // Runs before the app's code, which may read its bundle identifier.
        _ = AppManifest.current
        AppProcess.begin(Self()).run()
    }

    /// Prepares the app on a test host, as a launched process does.
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

/// Mounts a delegate in an ``App``, like SwiftUI's `UIApplicationDelegateAdaptor`:
/// `@ApplicationDelegateAdaptor(AppDelegate.self) private var delegate`.
///
/// The delegate is created with the app, and `applicationDidFinishLaunching` is called before the app's scenes are collected.
///
/// Differs from Apple: an `ObservableObject` is not supported, and the delegate is not in the environment.
@MainActor
@propertyWrapper
public struct ApplicationDelegateAdaptor<Delegate: ApplicationDelegate> {
    /// The app's delegate.
    public let wrappedValue: Delegate

    /// - Parameter type: the type of the delegate. An app has one delegate.
    /// - Precondition: The app mounts no other delegate.
    public init(_ type: Delegate.Type = Delegate.self) {
        precondition(MountedDelegate.current == nil, "an app has one delegate: \(type) is the second")
        wrappedValue = Delegate()
        MountedDelegate.current = wrappedValue
    }
}

/// The delegate that an app mounts while the app is created.
@MainActor
enum MountedDelegate {
    static var current: (any ApplicationDelegate)?
}
