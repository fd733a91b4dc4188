import Foundation
import Testing
import TransferMachines

@testable import Stormy

/// Tests which setting decides whether a photo keeps its location.
@Suite struct LocationDecisionTests {
    private static func decision(_ option: Bool?, _ destination: Bool?, _ configuration: Bool?) throws -> LocationDecision {
        let place = PhotoDestination(
            name: "home", way: UploadWay(.webdav), url: try #require(URL(string: "https://h/photos/")), credential: nil,
            keepsLocation: destination)
        return LocationDecision(option: option, destination: place, configuration: configuration)
    }

    private static let choices: [Bool?] = [nil, false, true]

    @Test func `the option decides before the destination, and the destination before keep_location`() throws {
        for option in Self.choices {
            for destination in Self.choices {
                for configuration in Self.choices {
                    let decision = try Self.decision(option, destination, configuration)
                    #expect(decision.keeps == (option ?? destination ?? configuration ?? false))
                    let source: LocationDecision.Source =
                        if option != nil { .option } else if destination != nil { .destination } else if configuration != nil {
                            .configuration
                        } else { .default }
                    #expect(decision.source == source && decision.option == option)
                }
            }
        }
    }

    @Test(
        arguments: [
            (true, nil, nil, "The location is kept in the photos because of --keep-location."),
            (false, true, true, "The location is removed from the photos because of --remove-location."),
            (
                nil, true, false,
                "The location is kept in the photos because the destination home has location = \"keep\" in the configuration."
            ),
            (nil, nil, true, "The location is kept in the photos because the configuration has keep_location = true."),
            (
                nil, nil, nil,
                "The location is removed from the photos by default. To choose, set \"location\" for home in the configuration."
            ),
        ] as [(Bool?, Bool?, Bool?, String)])
    func `the sentence names the setting that decides`(
        _ option: Bool?, _ destination: Bool?, _ configuration: Bool?, _ sentence: String
    ) throws {
        #expect(try Self.decision(option, destination, configuration).sentence == sentence)
    }
}
