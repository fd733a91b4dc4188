// swift-tools-version: 6.2
import PackageDescription

// The house, as data: each line names a module and everything it may import.
// `Tests/ArchitectureTests` reads this file and the sources and fails on a wrong arrow.

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
]

// The version of this source. `make release` adds the commits after it, and `Packaging/package.py` reads it here.
let released = "0.2.0"
let version = Context.environment["STORMY_VERSION"].flatMap { $0.isEmpty ? nil : $0 } ?? released

// How `make release` links the installed programs. `Packaging/icu_data.py` makes the object of ICU data. Authors of apps need none of this: an app
// that builds on this package is linked as its author says.
let icuData = Context.environment["ICU_DATA"]
let shipped: [LinkerSetting] =
    icuData == nil
    ? []
    : [
        .unsafeFlags(
            ["-use-ld=lld"]
                + [
                    "--no-export-dynamic", "--as-needed", "--icf=safe", "-z", "now", "-z", "pack-relative-relocs", "--strip-all",
                    "-T",
                    Context.packageDirectory + "/Packaging/layout.ld",
                ]
                .flatMap { ["-Xlinker", $0] })
    ]
let smallICU: [LinkerSetting] = icuData.map { [.unsafeFlags([$0])] } ?? []

let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let sqlite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

// The layer of each module: `Sources/<layer>/<module>`, and the laboratory in `Tests`. A layer depends on the layers before it.
let layers: [(name: String, modules: [String])] = [
    (
        "C",
        [
            "CLinux", "CLibcurl", "CLibcrypto", "COpenSSL", "CLibnotify", "CLibexpat", "CTomlplusplus",
            "CNlohmannJSON", "CWarningRegions", "CZlib", "CCairo", "CCoreFoundation",
        ]
    ),
    ("Core", ["BackgroundScheduling", "TransferMachines", "BackgroundNotices"]),
    ("Store", ["ProcessSupport", "UserUnits", "SQLiteFiles", "Spool", "BackgroundLedger"]),
    (
        "Agent",
        [
            "BackgroundAgent", "CurlTransport", "DesktopBus", "DesktopServices", "RehearsalSupport", "BackgroundAgentTool",
            "background-agent",
        ]
    ),
    (
        "API",
        [
            "BackgroundRuntime", "BackgroundTasks", "BackgroundTransfer", "UserNotifications", "BackgroundScenes",
            "BackgroundCommands",
        ]
    ),
    (
        "Stormy",
        [
            "StormyWeather", "StormyConfiguration", "Stormy", "StormyCommand", "PhotoLocations", "stormy", "photo-cleaner",
            "file-chooser",
        ]
    ),
    (
        "TestKit",
        [
            "ServerScripts", "FaultyServer", "BackgroundTasksTesting", "Rehearsal", "stormy-rehearse",
        ]
    ),
    ("Examples", ["tide-example", "zashi-example", "realm-example", "courier-example"]),
    (
        "Laboratory",
        [
            "Simulation", "simulate", "proving-ground", "fuzz-wire", "fuzz-resume", "fuzz-ledger", "fuzz-configuration",
            "fuzz-photo", "fuzz-locations",
        ]
    ),
]

let package = Package(
    name: "stormy",
    products: [
        .library(name: "BackgroundTasks", targets: ["BackgroundTasks"]),
        .library(name: "BackgroundTransfer", targets: ["BackgroundTransfer"]),
        .library(name: "UserNotifications", targets: ["UserNotifications"]),
        .library(name: "BackgroundScenes", targets: ["BackgroundScenes"]),
        .library(name: "BackgroundCommands", targets: ["BackgroundCommands"]),
        .library(name: "BackgroundTasksTesting", targets: ["BackgroundTasksTesting"]),
        .library(name: "ServerScripts", targets: ["ServerScripts"]),
        .library(name: "FaultyServer", targets: ["FaultyServer"]),
        .executable(name: "stormy", targets: ["stormy"]),
        .executable(name: "stormy-rehearse", targets: ["stormy-rehearse"]),
        .executable(name: "background-agent", targets: ["background-agent"]),
        .executable(name: "photo-cleaner", targets: ["photo-cleaner"]),
        .executable(name: "file-chooser", targets: ["file-chooser"]),
        .executable(name: "tide-example", targets: ["tide-example"]),
        .executable(name: "zashi-example", targets: ["zashi-example"]),
        .executable(name: "realm-example", targets: ["realm-example"]),
        .executable(name: "courier-example", targets: ["courier-example"]),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        // C: doors to the system, no logic.
        .target(name: "CLinux", cSettings: [.define("STORMY_VERSION", to: "\"\(version)\"")]),
        .systemLibrary(name: "CLibcurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CLibcrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLibnotify", pkgConfig: "libnotify", providers: [.apt(["libnotify-dev"])]),
        .systemLibrary(name: "CLibexpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CCairo"),
        .systemLibrary(name: "CCoreFoundation"),
        .target(name: "CTomlplusplus"),
        .target(name: "CNlohmannJSON"),
        .target(name: "CWarningRegions", exclude: ["regions.bin"]),

        // Core: pure decisions.
        .target(name: "BackgroundScheduling", swiftSettings: strict),
        .target(name: "TransferMachines", dependencies: ["CLibexpat"], swiftSettings: strict),
        .target(name: "BackgroundNotices", swiftSettings: strict),

        // Store: files, processes, and the durable contract.
        .target(name: "ProcessSupport", dependencies: ["CLinux"], swiftSettings: strict),
        .target(name: "UserUnits", dependencies: ["ProcessSupport"], swiftSettings: strict),
        .target(
            name: "Spool", dependencies: ["CLibcrypto", "CLinux", "ProcessSupport", "TransferMachines"], swiftSettings: strict),
        .target(name: "SQLiteFiles", dependencies: ["ProcessSupport", grdb, sqlite], swiftSettings: strict),
        .target(
            name: "BackgroundLedger",
            dependencies: [
                "BackgroundNotices", "BackgroundScheduling", "CLinux", "ProcessSupport", "SQLiteFiles", "TransferMachines", grdb,
            ], swiftSettings: strict),

        // Agent: one process per app, and its effects.
        .target(
            name: "BackgroundAgent",
            dependencies: [
                "BackgroundLedger", "BackgroundNotices", "BackgroundScheduling", "CLinux", "ProcessSupport", "Spool",
                "TransferMachines",
            ], swiftSettings: strict),
        .target(
            name: "CurlTransport", dependencies: ["CLibcurl", "CLinux", "COpenSSL", "TransferMachines"], swiftSettings: strict),
        // Without Foundation, which is ten times the size of file-chooser.
        .target(name: "DesktopBus", dependencies: ["CLibnotify"], swiftSettings: strict),
        .target(
            name: "DesktopServices",
            dependencies: ["BackgroundNotices", "BackgroundScheduling", "CLibnotify", "CLinux", "DesktopBus"],
            swiftSettings: strict),
        .target(name: "RehearsalSupport", dependencies: ["BackgroundScheduling", "ProcessSupport"], swiftSettings: strict),
        .target(
            name: "BackgroundAgentTool",
            dependencies: [
                "BackgroundAgent", "BackgroundLedger", "BackgroundNotices", "BackgroundScheduling", "CLinux", "CurlTransport",
                "DesktopServices", "ProcessSupport", "RehearsalSupport", "UserUnits",
            ], swiftSettings: strict),
        .executableTarget(
            name: "background-agent", dependencies: ["BackgroundAgentTool"], swiftSettings: strict,
            linkerSettings: shipped + smallICU),

        // API: what an author imports.
        .target(
            name: "BackgroundRuntime",
            dependencies: [
                "BackgroundLedger", "BackgroundScheduling", "CCoreFoundation", "CLinux", "ProcessSupport", "UserUnits",
            ],
            swiftSettings: strict),
        .target(
            name: "BackgroundTasks",
            dependencies: ["BackgroundLedger", "BackgroundRuntime", "BackgroundScheduling", "ProcessSupport"],
            swiftSettings: strict),
        .target(
            name: "BackgroundTransfer",
            dependencies: [
                "BackgroundLedger", "BackgroundRuntime", "BackgroundScheduling", "CurlTransport", "ProcessSupport", "Spool",
                "TransferMachines",
            ], swiftSettings: strict),
        .target(
            name: "UserNotifications",
            dependencies: ["BackgroundLedger", "BackgroundNotices", "BackgroundRuntime", "ProcessSupport", "Spool"],
            swiftSettings: strict),
        .target(
            name: "BackgroundScenes",
            dependencies: ["BackgroundRuntime", "BackgroundTasks", "BackgroundTransfer", "UserNotifications"],
            swiftSettings: strict),
        .target(
            name: "BackgroundCommands",
            dependencies: [
                "BackgroundLedger", "BackgroundNotices", "BackgroundRuntime", "BackgroundScheduling", "BackgroundTasks",
                "BackgroundTransfer", "ProcessSupport", "Spool", "UserUnits",
                argumentParser,
            ], resources: [.embedInCode("Doctor/measured-servers.json")], swiftSettings: strict),

        // Stormy: the app.
        .target(
            name: "StormyWeather", dependencies: ["CNlohmannJSON", "CWarningRegions", "TransferMachines"], swiftSettings: strict),
        .target(
            name: "StormyConfiguration", dependencies: ["CTomlplusplus", "StormyWeather", "TransferMachines"],
            swiftSettings: strict),
        .target(
            name: "Stormy",
            dependencies: [
                "BackgroundRuntime", "BackgroundScenes", "BackgroundTasks", "BackgroundTransfer", "CCairo", "ProcessSupport",
                "SQLiteFiles", "Spool", "StormyWeather", "TransferMachines", "UserNotifications", grdb,
            ], swiftSettings: strict),
        .target(
            name: "StormyCommand",
            dependencies: [
                "BackgroundCommands", "BackgroundRuntime", "BackgroundScenes", "BackgroundTasks", "BackgroundTransfer",
                "ProcessSupport", "Stormy", "StormyConfiguration", "StormyWeather", argumentParser,
            ], resources: [.embedInCode("Resources/Stormy-Info.plist"), .embedInCode("Resources/Stormy.svg")],
            swiftSettings: strict),
        .target(name: "PhotoLocations", dependencies: ["CZlib"], swiftSettings: strict),
        .executableTarget(
            name: "stormy", dependencies: ["StormyCommand"], swiftSettings: strict, linkerSettings: shipped + smallICU),
        .executableTarget(
            name: "photo-cleaner", dependencies: ["CLinux", "PhotoLocations"], swiftSettings: strict, linkerSettings: shipped),
        .executableTarget(
            name: "file-chooser", dependencies: ["CLibnotify", "CLinux", "DesktopBus"], swiftSettings: strict,
            linkerSettings: shipped),

        // TestKit: what proves it, here and in an author's tests.
        .target(name: "ServerScripts", swiftSettings: strict),
        .target(
            name: "FaultyServer",
            dependencies: [
                "COpenSSL", "ServerScripts", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
            ], swiftSettings: strict),
        .target(
            name: "BackgroundTasksTesting",
            dependencies: [
                "BackgroundAgent", "BackgroundLedger", "BackgroundNotices", "BackgroundRuntime", "BackgroundScenes",
                "BackgroundScheduling", "BackgroundTasks", "BackgroundTransfer", "ProcessSupport", "ServerScripts",
                "TransferMachines",
            ], swiftSettings: strict),
        .target(
            name: "Rehearsal",
            dependencies: [
                "BackgroundCommands", "BackgroundLedger", "BackgroundRuntime", "BackgroundScheduling", "CLinux", "FaultyServer",
                "ProcessSupport", "RehearsalSupport", "Spool", argumentParser,
            ], swiftSettings: strict),
        // The programs that a rehearsal starts are built with it, at the same time.
        .executableTarget(
            name: "stormy-rehearse", dependencies: ["Rehearsal", "background-agent", "photo-cleaner", "stormy"],
            swiftSettings: strict,
            linkerSettings: shipped + smallICU),
        .target(
            name: "Simulation",
            dependencies: [
                "BackgroundAgent", "BackgroundLedger", "BackgroundScheduling", "BackgroundTasks", "BackgroundTasksTesting",
                "ProcessSupport", "ServerScripts", "Spool", "TransferMachines",
            ], swiftSettings: strict),
        .executableTarget(name: "simulate", dependencies: ["Simulation"], swiftSettings: strict),
        .executableTarget(
            name: "proving-ground",
            dependencies: [
                "BackgroundCommands", "BackgroundLedger", "BackgroundRuntime", "BackgroundScheduling", "BackgroundTasks",
                "UserNotifications",
            ], resources: [.copy("proving-ground-Info.plist")], swiftSettings: strict),

        // Examples of apps.
        .executableTarget(
            name: "tide-example",
            // Also the modules that BackgroundScenes depends on, because SwiftPM rebuilds only after changes of direct dependencies.
            dependencies: [
                "BackgroundCommands", "BackgroundScenes", "BackgroundTasks", "BackgroundTransfer", "UserNotifications",
            ],
            resources: [.copy("tide-example-Info.plist")],
            swiftSettings: strict),
        .executableTarget(
            name: "zashi-example", dependencies: ["BackgroundCommands", "BackgroundTasks", "BackgroundTransfer"],
            resources: [.copy("zashi-example-Info.plist")], swiftSettings: strict),
        .executableTarget(
            name: "realm-example",
            dependencies: [
                "BackgroundCommands", "BackgroundScenes", "BackgroundTasks", "BackgroundTransfer", "UserNotifications",
            ],
            resources: [.copy("realm-example-Info.plist")], swiftSettings: strict),
        .executableTarget(
            name: "courier-example",
            dependencies: [
                "BackgroundCommands", "BackgroundScenes", "BackgroundTasks", "BackgroundTransfer", "UserNotifications",
            ],
            resources: [.copy("courier-example-Info.plist")], swiftSettings: strict),

        // Tests/StandIns: two GUI libraries by the shape of their protocols alone, and an app on each.
        .target(name: "StandInSwiftCrossUI", path: "Tests/StandIns/StandInSwiftCrossUI", swiftSettings: strict),
        .target(name: "StandInAdwaita", path: "Tests/StandIns/StandInAdwaita", swiftSettings: strict),
        .executableTarget(
            name: "crossui-example",
            dependencies: [
                "BackgroundCommands", "BackgroundTasks", "BackgroundTransfer", "StandInSwiftCrossUI", "UserNotifications",
            ], path: "Tests/StandIns/crossui-example", resources: [.copy("crossui-example-Info.plist")], swiftSettings: strict),
        .executableTarget(
            name: "adwaita-example",
            dependencies: [
                "BackgroundCommands", "BackgroundTasks", "BackgroundTransfer", "StandInAdwaita", "UserNotifications",
            ], path: "Tests/StandIns/adwaita-example", resources: [.copy("adwaita-example-Info.plist")], swiftSettings: strict),

        // Tests/TestSamples: the part of a large table that CI tests.
        .target(name: "TestSamples", path: "Tests/TestSamples", swiftSettings: strict),
        // Tests/StormyFixtures: answers of weather services, for every kind of test.
        .target(name: "StormyFixtures", path: "Tests/StormyFixtures", swiftSettings: strict),

        // Tests.
        .testTarget(
            name: "StormyCommandTests",
            dependencies: [
                "BackgroundCommands", "BackgroundLedger", "BackgroundNotices", "BackgroundRuntime", "BackgroundTasksTesting",
                "ProcessSupport", "ServerScripts", "Spool", "Stormy", "StormyCommand", "StormyConfiguration", "StormyFixtures",
            ], swiftSettings: strict),
        .testTarget(
            name: "StormyWeatherTests", dependencies: ["StormyWeather", "TestSamples", "TransferMachines"], exclude: ["Fixtures"],
            swiftSettings: strict),
        .testTarget(
            name: "BackgroundTasksTests",
            dependencies: ["BackgroundLedger", "BackgroundRuntime", "BackgroundScheduling", "BackgroundTasks", "ProcessSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "BackgroundScenesTests",
            dependencies: [
                "BackgroundScenes", "BackgroundTasks", "BackgroundTasksTesting", "BackgroundTransfer", "ServerScripts",
                "UserNotifications",
            ], swiftSettings: strict),
        .testTarget(name: "PhotoLocationsTests", dependencies: ["PhotoLocations", "TestSamples"], swiftSettings: strict),
        .testTarget(
            name: "StormyTests", dependencies: ["BackgroundTasksTesting", "ServerScripts", "Stormy", grdb], swiftSettings: strict),
        .testTarget(
            name: "StormyConfigurationTests", dependencies: ["StormyConfiguration", "StormyWeather"], swiftSettings: strict),
        .testTarget(
            name: "TransferMachinesTests", dependencies: ["ServerScripts", "TestSamples", "TransferMachines"],
            swiftSettings: strict),
        .testTarget(
            name: "CurlTransportTests", dependencies: ["CurlTransport", "FaultyServer", "TransferMachines"], swiftSettings: strict
        ),
        .testTarget(
            name: "DesktopServicesTests",
            dependencies: [
                "BackgroundNotices", "BackgroundScheduling", "BackgroundTasksTesting", "CLibnotify", "DesktopBus",
                "DesktopServices",
            ], swiftSettings: strict),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "BackgroundLedger", "BackgroundScheduling", "CLinux", "FaultyServer", "ProcessSupport", "Spool", "StormyFixtures",
                "TestSamples",
            ], swiftSettings: strict),
        .testTarget(name: "ArchitectureTests", swiftSettings: strict),
        .testTarget(name: "UserUnitsTests", dependencies: ["ProcessSupport", "UserUnits"], swiftSettings: strict),
        .testTarget(
            name: "BackgroundSchedulingTests", dependencies: ["BackgroundScheduling", "TestSamples"], swiftSettings: strict),
        .testTarget(name: "BackgroundNoticesTests", dependencies: ["BackgroundNotices"], swiftSettings: strict),
        .testTarget(
            name: "BackgroundLedgerTests",
            dependencies: [
                "BackgroundLedger", "BackgroundNotices", "BackgroundScheduling", "CLinux", "ProcessSupport", "Spool",
                "SQLiteFiles", "TransferMachines", grdb,
            ], swiftSettings: strict),
        .testTarget(
            name: "BackgroundAgentTests",
            dependencies: [
                "BackgroundAgent", "BackgroundLedger", "BackgroundNotices", "BackgroundScheduling", "BackgroundTasksTesting",
                "ProcessSupport", "Spool", "TransferMachines", grdb,
            ], swiftSettings: strict),
        .testTarget(
            name: "BackgroundTransferTests",
            dependencies: [
                "BackgroundLedger", "BackgroundTransfer", "FaultyServer", "TransferMachines",
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "NIOWebSocket", package: "swift-nio"),
            ], swiftSettings: strict),
        // Real code has warnings; what must hold is that it compiles.
        .testTarget(
            name: "APICompileTests",
            dependencies: [
                "BackgroundScenes", "BackgroundTasks", "BackgroundTasksTesting", "BackgroundTransfer", "ServerScripts",
                "UserNotifications",
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        .testTarget(
            name: "BackgroundTasksTestingTests",
            dependencies: [
                "BackgroundLedger", "BackgroundRuntime", "BackgroundScenes", "BackgroundScheduling", "BackgroundTasks",
                "BackgroundTasksTesting", "BackgroundTransfer", "CurlTransport", "FaultyServer", "ProcessSupport",
                "ServerScripts", "Simulation", "TestSamples", "TransferMachines", "UserNotifications",
            ], swiftSettings: strict),
        .testTarget(name: "FaultyServerTests", dependencies: ["FaultyServer", "ServerScripts"], swiftSettings: strict),
    ],
    // Of CTomlplusplus and CNlohmannJSON alone.
    cxxLanguageStandard: .cxx17
)

// The main function of these programs is the fuzzer's (`make fuzz`). Every other build compiles them as libraries without a user, so that a
// change they do not follow is seen by the build of the tests.
let fuzzed: [Target] = [
    .target(name: "fuzz-wire", dependencies: ["TransferMachines"], swiftSettings: strict),
    .target(name: "fuzz-resume", dependencies: ["BackgroundTransfer"], swiftSettings: strict),
    .target(name: "fuzz-ledger", dependencies: ["BackgroundLedger"], swiftSettings: strict),
    .target(name: "fuzz-configuration", dependencies: ["StormyConfiguration", "StormyWeather"], swiftSettings: strict),
    .target(name: "fuzz-photo", dependencies: ["Stormy"], swiftSettings: strict),
    .target(name: "fuzz-locations", dependencies: ["PhotoLocations"], swiftSettings: strict),
]
let fuzzing = strict + [.unsafeFlags(["-parse-as-library"])]
let isFuzzing = Context.environment["FUZZING"] == "1"
package.targets += fuzzed.map { target in
    isFuzzing ? .executableTarget(name: target.name, dependencies: target.dependencies, swiftSettings: fuzzing) : target
}

for target in package.targets where target.type != .test && target.path == nil {
    let layer = layers.first { $0.modules.contains(target.name) }
    guard let layer else { fatalError("\(target.name) belongs to no layer") }
    target.path = "\(layer.name == "Laboratory" ? "Tests" : "Sources")/\(layer.name)/\(target.name)"
}

// The tests of some modules and what they need, and nothing else: a sanitizer need not wait for the rest to be built.
if let modules = Context.environment["ONLY_TESTS_OF"] {
    var (needed, open): (Set<String>, [String]) = ([], modules.split(separator: " ").map { "\($0)Tests" })
    while let name = open.popLast() {
        guard needed.insert(name).inserted else { continue }
        for dependency in package.targets.first(where: { $0.name == name })?.dependencies ?? [] {
            switch dependency {
            case .targetItem(let name, _), .byNameItem(let name, _): open.append(name)
            default: break
            }
        }
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products = []
    // The thread sanitizer does not see how threads wait for Swift's own mutex.
    for target in package.targets where target.type != .system {
        target.dependencies.append("SanitizedSynchronization")
        target.swiftSettings =
            (target.swiftSettings ?? []) + [
                .unsafeFlags(["-module-alias", "Synchronization=SanitizedSynchronization"])
            ]
    }
    package.targets.append(
        .target(name: "SanitizedSynchronization", path: "Tests/Sanitizers/SanitizedSynchronization", swiftSettings: strict))
}
