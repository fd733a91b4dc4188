import BackgroundRuntime
import BackgroundTransfer
import Foundation

/// The three methods of `UIApplicationDelegate` that background work needs, without UIKit.
///
/// Mark the type with `@main` if the delegate is the entry point of the iOS app. Otherwise add the delegate to an ``App`` with
/// ``ApplicationDelegateAdaptor``.
///
/// Differs from Apple: the methods have no `UIApplication` object and no options, and the other methods of
/// `UIApplicationDelegate` do not exist. A process that the agent launched is never in the foreground.
@MainActor
public protocol ApplicationDelegate: AnyObject {
    init()

    /// Registers handlers. Every process of the app calls this method first, whether a user or the agent started the process. The
    /// default implementation does nothing.
    ///
    /// Differs from Apple: the method returns no Boolean value. On iOS, the value decides whether the app opens a URL.
    func applicationDidFinishLaunching()

    /// Schedules the next work. A process that a user started calls this method once, after the actions of the app's ``Worker``
    /// scenes have returned. A process that the agent launched never calls this method. After the call, the process continues
    /// until all work that the app began is stored, also work of unstructured tasks. If the app has no ``Worker`` scene, the
    /// process continues until half a second has passed in which the app began no work. The process also waits for HTTP requests
    /// that it sends, so that the handlers of these requests are called. This wait takes at most
    /// `BackgroundSettings.continuation`. The default implementation does nothing.
    func applicationDidEnterBackground()
}

/// A delegate that creates a background session only when events of the session arrive.
///
/// A session that the delegate creates in `applicationDidFinishLaunching` does not need this protocol. An app with a scene that
/// has `.backgroundTask(.urlSession(…))` does not need this protocol either.
@MainActor
public protocol BackgroundSessionApplicationDelegate: ApplicationDelegate {
    /// Handles a launch for ended transfers of a background session. The method must create the session with a delegate. The app
    /// must call the completion handler after `urlSessionDidFinishEvents(forBackgroundURLSession:)`. The launch ends when the app
    /// calls the completion handler.
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
    package static func prepareForTestHost() { AppProcess.begin(Self()).prepareForTestHost() }

    func finishLaunching() {
        if let self = self as? any BackgroundSessionApplicationDelegate {
            BackgroundTransfers.handleEventsForBackgroundURLSession { identifier, completionHandler in
                self.application(handleEventsForBackgroundURLSession: identifier, completionHandler: completionHandler)
            }
        }
        applicationDidFinishLaunching()
    }
}

/// A property wrapper that adds a delegate to an ``App``, like SwiftUI's `UIApplicationDelegateAdaptor`. Example:
/// `@ApplicationDelegateAdaptor(AppDelegate.self) private var delegate`.
///
/// The wrapper creates the delegate together with the app. `applicationDidFinishLaunching` is called before the app's scenes are
/// collected.
///
/// Differs from Apple: an `ObservableObject` is not supported as a delegate, and the delegate is not in the environment.
@MainActor
@propertyWrapper
public struct ApplicationDelegateAdaptor<Delegate: ApplicationDelegate> {
    /// The app's delegate.
    public let wrappedValue: Delegate

    /// - Parameter type: the type of the delegate. An app can have only one delegate.
    /// - Precondition: The app has no other delegate adaptor.
    public init(_ type: Delegate.Type = Delegate.self) {
        precondition(MountedDelegate.current == nil, "an app can have only one delegate, and \(type) is a second delegate")
        wrappedValue = Delegate()
        MountedDelegate.current = wrappedValue
    }
}

/// Stores the delegate that a property wrapper of the app creates, until the app's process receives it.
@MainActor
enum MountedDelegate {
    static var current: (any ApplicationDelegate)?
}
