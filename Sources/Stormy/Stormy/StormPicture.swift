import BackgroundRuntime
import BackgroundTasks
import Foundation
import StormyWeather
import UserNotifications

/// The picture that the notification of a storm carries. Its file is there as long as this is.
final class StormPicture {
    let attachment: UNNotificationAttachment
    private let file: URL

    /// `nil`: no forecast is stored, or nothing here draws it. The notification says all of it in words.
    init?(_ storm: StormRecord, _ place: Place, _ store: StormyStore) {
        let now = BGTaskScheduler.now
        guard let forecast = try? store.lastForecast(of: place)?.content else { return nil }
        let plotted = PlottedHours(
            forecast, Assessment(verdict: .stormy, reasons: storm.reasons), rule: StormySettings.current.rule, now: now,
            count: StormGlance.hours(until: storm.ends, now: now), timeZone: place.zone, locale: PersonLocale.current,
            units: .ofPerson)
        guard !plotted.hours.isEmpty,
            let png = try? CairoPicture.png(of: StormGlance(plotted).shapes, width: StormGlance.side, height: StormGlance.side)
        else { return nil }
        file = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-\(UUID().uuidString).png")
        guard (try? png.write(to: file, options: [.withoutOverwriting])) != nil else { return nil }
        do { attachment = try UNNotificationAttachment(identifier: "hours", url: file) } catch {
            try? FileManager.default.removeItem(at: file)
            return nil
        }
    }

    deinit { try? FileManager.default.removeItem(at: file) }
}
