import CZlib
import Testing

@testable import PhotoLocations

/// Tests the second search with a place that the parsers have not found.
@Suite struct LocationProofTests {
    private let place = FoundPlace(latitude: -33.856784, longitude: 151.215297)

    private func finds(_ bytes: [UInt8], _ place: FoundPlace? = nil) -> Bool {
        var proof = LocationProof([place ?? self.place])
        let all = [UInt8](repeating: 0x41, count: 100) + bytes + [UInt8](repeating: 0x41, count: 100)
        return proof.firstPlace(in: all, upTo: all.count) != nil
    }

    @Test(arguments: [
        "33.856784", "33.8568", "-33.85678", "151.2152", "33,51.40704S", "33 deg 51' 24.42\" S", "33° 51'",
        "33/1, 51/1, 2442/100", "3351.40704",
        "33,856784", "33-51-24.4 151-12-55.1", "+33.86-151.22 33.856 151.215", "-335124.4+1511255.1",
    ]) func `the place is found in text`(_ text: String) {
        #expect(finds(Array(text.utf8)))
        let wide = text.utf8.flatMap { [$0, 0] as [UInt8] }
        #expect(finds(wide) && finds([0] + wide), "UTF-16")
    }

    @Test(arguments: [true, false]) func `the place is found in rational numbers`(_ isLittle: Bool) {
        let number = isLittle ? Samples.little : Samples.big
        for numbers in [[33, 1, 51, 1, 244_224, 10_000], [33, 1, 51_407_040, 1_000_000, 0, 1]] {
            #expect(finds(numbers.flatMap { number($0, 4) }))
        }
        #expect(!finds([33, 1, 52, 1, 0, 1].flatMap { number($0, 4) }), "another place")
    }

    @Test(arguments: [true, false]) func `the place is found in doubles, floats and whole numbers`(_ isLittle: Bool) {
        let order = { (bytes: [UInt8]) in isLittle ? bytes.reversed() : bytes }
        func bytes(_ value: UInt64, _ count: Int) -> [UInt8] {
            order((0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64(count - 1 - $0))) })
        }
        #expect(finds(bytes((-33.856784).bitPattern, 8)))
        #expect(finds(bytes(UInt64(Float(-33.856784).bitPattern), 4) + bytes(UInt64(Float(151.215297).bitPattern), 4)))
        for scale in [1e7, 1e6, 1e5, 65_536] {
            let numbers = [-33.856784, 151.215297].map { UInt64(UInt32(bitPattern: Int32(($0 * scale).rounded()))) }
            #expect(finds(bytes(numbers[0], 4) + bytes(numbers[1], 4)), "\(scale)")
            #expect(!finds(bytes(numbers[0], 4)), "one number alone is a coincidence")
        }
    }

    /// The search skips long runs of zeros. However, a number in the file can begin with zeros.
    @Test(arguments: 0..<20) func `the place is found after zeros`(_ count: Int) {
        let zeros = [UInt8](repeating: 0, count: 1_000 + count)
        #expect(finds(zeros + [33, 1, 51, 1, 244_224, 10_000].flatMap { Samples.big($0, 4) } + zeros))
        let wide = "33.856784".utf8.flatMap { [0, $0] as [UInt8] }
        #expect(finds(zeros + wide + zeros) && !finds(zeros))
    }

    @Test func `the place is found in deflated streams`() {
        let text = Array("taken at 33.856784 south, 151.215297 east of Greenwich".utf8)
        var size = compressBound(UInt(text.count))
        var deflated = [UInt8](repeating: 0, count: Int(size))
        compress(&deflated, &size, text, UInt(text.count))
        #expect(finds(Array(deflated[..<Int(size)])))
    }

    /// The file is read in pieces. A deflated stream of 60 KB begins in one piece and ends in the next piece.
    @Test func `a deflated stream across the border of two pieces is searched`() throws {
        var state: UInt32 = 7
        var noise = (0..<60_000).map { _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(state >> 24)
        }
        noise += Array("taken at 47.370094 and 8.549106 of Greenwich".utf8)
        var size = compressBound(UInt(noise.count))
        var deflated = [UInt8](repeating: 0, count: Int(size))
        compress(&deflated, &size, noise, UInt(noise.count))
        let photo = Samples.jpeg(Samples.exif(Samples.tiff()))
        for start in [(1 << 20) - 10, (1 << 20) - 50_000, 1 << 20] {
            let file = photo + [UInt8](repeating: 5, count: start - photo.count) + deflated[..<Int(size)]
            let found = try PhotoLocations(searching: MemoryBytes(file))
            #expect(throws: LocationFailure.self) { try found.prove() }
        }
    }

    @Test func `the bytes of the original number are found, also as hexadecimal digits`() {
        let raw = [33, 1, 51, 1, 244_224, 10_000].flatMap { Samples.big($0, 4) }
        let place = FoundPlace(raw: raw)
        #expect(finds(raw, place) && finds(Array(raw.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined().utf8), place))
    }

    @Test(arguments: ["133.856", "0.33856784", "15.1215", "33.9 151", "version 33.85", "51.40"])
    func `other numbers are not the place`(_ text: String) {
        #expect(!finds(Array(text.utf8)))
    }

    @Test(arguments: [(51.5, 0.1, "Shot 51.5 mm 0.1 s"), (10.5, 20.5, "10.5 to 20.5 degrees"), (2, 1, "1 2 1 2")])
    func `numbers of few digits are a coincidence`(_ latitude: Double, _ longitude: Double, _ text: String) {
        let place = FoundPlace(latitude: latitude, longitude: longitude)
        #expect(!finds(Array(text.utf8), place) && !finds([1, 1, 2, 1, 1, 1, 2, 1].flatMap { Samples.big($0, 4) }, place))
        #expect(finds(Array("51.5123, 0.1123".utf8), FoundPlace(latitude: 51.5123, longitude: 0.1123)))
    }

    @Test func `zeros in front of another value are not a small angle`() {
        let place = FoundPlace(latitude: 51.4778, longitude: 0.0084)
        #expect(!finds([0, 1, 0, 1, 30, 1].flatMap { Samples.big($0, 4) }, place))
        #expect(finds([0, 1, 0, 1, 3_024, 100].flatMap { Samples.big($0, 4) }, place))
    }

    /// The second search finds a copy of the location that the parsers have missed.
    @Test func `a copy that no parser reads is held`() throws {
        let jpeg = Samples.jpeg(
            Samples.exif(Samples.tiff()), Samples.segment(0xE9, Array("NOTES\0at 47.3700944 or near".utf8)))
        let found = try PhotoLocations(searching: MemoryBytes(jpeg))
        #expect(throws: LocationFailure.self) { try found.prove() }
    }
}
