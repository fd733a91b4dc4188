import BackgroundRuntime
import BackgroundTasks
import Foundation
import ProcessSupport
import StormyWeather
import UserNotifications

/// The picture in the notification of a storm. When this object is released, the file of the picture is removed.
final class StormPicture {
    let attachment: UNNotificationAttachment
    private let file: URL

    /// `nil` if no forecast is stored, or if the library that draws the picture is not installed. The text of the notification is
    /// complete without the picture.
    init?(_ storm: StormRecord, _ place: Place, _ store: StormyStore) {
        let now = BGTaskScheduler.now
        guard let forecast = try? store.lastForecast(of: place)?.content else { return nil }
        let plotted = PlottedHours(
            forecast, Assessment(verdict: .stormy, reasons: storm.reasons), rule: StormySettings.current.rule, now: now,
            count: StormThumbnail.hours(until: storm.ends, now: now), timeZone: place.zone, locale: UserLocale.current,
            units: .ofPerson)
        guard !plotted.hours.isEmpty,
            let png = try? CairoPicture.png(
                of: StormThumbnail(plotted).shapes, width: StormThumbnail.side, height: StormThumbnail.side)
        else { return nil }
        file = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-\(UUID.random().uuidString).png")
        guard (try? png.write(to: file, options: [.withoutOverwriting])) != nil else { return nil }
        do { attachment = try UNNotificationAttachment(identifier: "hours", url: file) } catch {
            try? FileManager.default.removeItem(at: file)
            return nil
        }
    }

    deinit { try? FileManager.default.removeItem(at: file) }
}
