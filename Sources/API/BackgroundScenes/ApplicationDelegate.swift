import BackgroundRuntime
import BackgroundTransfer
import Foundation

/// What is left of `UIApplicationDelegate` where there is no UIKit: the three moments that background work hangs on.
///
/// Mark it `@main`, where the iOS app's delegate was its entry; or mount it in an ``App`` with ``ApplicationDelegateAdaptor``.
///
/// Differs from Apple: there is no `UIApplication` to be given, no options, no scenes to connect, and none of the other moments. A
/// process that the agent launched is never in the foreground.
@MainActor
public protocol ApplicationDelegate: AnyObject {
    init()

    /// Where handlers are registered. First of all, in every process of the app: one that a person started, and every launch. By default
    /// nothing.
    ///
    /// Differs from Apple: nothing is answered, as there is no URL that the app could refuse.
    func applicationDidFinishLaunching()

    /// The place to schedule what comes next. Once in a process that a person started, when the app's ``Worker`` scenes have returned; at
    /// once where it has none. Never in a launch. The process lives on until everything that the app began is durable, also in tasks of its
    /// own; without a ``Worker`` until the app has begun nothing for half a second. Requests that this process makes itself are waited for as
    /// well, for `BackgroundSettings.continuation` at most, so that their handlers are called. By default nothing.
    func applicationDidEnterBackground()
}

/// A delegate that makes its background sessions only when it is told of their events.
///
/// A session that the delegate makes in `applicationDidFinishLaunching` needs none of this, nor does a scene with
/// `.backgroundTask(.urlSession(…))`.
@MainActor
public protocol BackgroundSessionApplicationDelegate: ApplicationDelegate {
    /// This process was launched because transfers of a background session have ended. It makes the session with its delegate, and sees to it
    /// that the completion handler is called after `urlSessionDidFinishEvents(forBackgroundURLSession:)`: the launch ends with that.
    ///
    /// Differs from Apple: asked in launches only. A process that a person started makes its sessions itself, and they hear.
    func application(
        handleEventsForBackgroundURLSession identifier: String, completionHandler: @escaping @Sendable () -> Void)
}

extension ApplicationDelegate {
    /// Nothing.
    public func applicationDidFinishLaunching() {}

    /// Nothing.
    public func applicationDidEnterBackground() {}

    /// Runs an app that has no scenes: a launch of the agent's; or, started by a person, from `applicationDidFinishLaunching` to
    /// `applicationDidEnterBackground`, and then leaves.
    public static func main() {
        // Before any of the app's code: it may ask for its bundle's identifier.
        _ = AppManifest.current
        AppProcess.begin(Self()).run()
    }

    /// What launched processes of the app do, on a test host.
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

/// Mounts a delegate in an ``App``, after SwiftUI's `UIApplicationDelegateAdaptor`:
/// `@ApplicationDelegateAdaptor(AppDelegate.self) private var delegate`.
///
/// The delegate is made with the app, and `applicationDidFinishLaunching` is called before the app's scenes are looked at.
///
/// Differs from Apple: no `ObservableObject` is looked for, and the delegate is not in the environment.
@MainActor
@propertyWrapper
public struct ApplicationDelegateAdaptor<Delegate: ApplicationDelegate> {
    /// The app's delegate.
    public let wrappedValue: Delegate

    /// - Parameter type: the delegate's; an app has one.
    /// - Precondition: the app mounts no other.
    public init(_ type: Delegate.Type = Delegate.self) {
        precondition(MountedDelegate.current == nil, "an app has one delegate: \(type) is the second")
        wrappedValue = Delegate()
        MountedDelegate.current = wrappedValue
    }
}

/// The delegate that an app mounts while it is made.
@MainActor
enum MountedDelegate {
    static var current: (any ApplicationDelegate)?
}
