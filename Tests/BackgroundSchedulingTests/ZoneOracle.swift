import Foundation

/// A source of expected times: Python's zoneinfo with the time zone tables of the system. zoneinfo is an independent
/// implementation of time zones.
///
/// For every clock change of every zone from 1970 to 2040, the oracle lists the instants of a daily time around the change.
struct ZoneOracle {
    /// A change of a zone's clocks.
    struct Change {
        var zone: String
        var instant: Double
        var offsetBefore: Int
        var offsetAfter: Int
        /// The occurrences of the requested time, from two days before the change to three days after the change, in order. If a
        /// day has no occurrence, the list has no entry for this day.
        var occurrences: [Double]
    }

    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    /// Returns the clock changes of all time zones under /usr/share/zoneinfo. If several zones have equal files, only one of
    /// these zones is used.
    static func changes(at time: String, zones: [String] = []) throws -> [Change] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-c", script, time] + zones
        process.environment = ProcessInfo.processInfo.environment.merging(["PYTHONTZPATH": "/usr/share/zoneinfo"]) { $1 }
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(description: "python3 ended with \(process.terminationStatus)") }
        return try text.split(separator: "\n").map { line in
            let fields = line.split(separator: " ")
            let numbers = fields.dropFirst().compactMap { Double($0) }
            guard numbers.count == fields.count - 1, numbers.count >= 3 else {
                throw Failed(description: "not understood: \(line)")
            }
            return Change(
                zone: String(fields[0]), instant: numbers[0], offsetBefore: Int(numbers[1]), offsetAfter: Int(numbers[2]),
                occurrences: Array(numbers[3...]))
        }
    }

    /// Reads the clock changes from the TZif files, and computes local times with zoneinfo (PEP 495).
    private static let script = """
        import bisect, os, struct, sys, zoneinfo
        from datetime import date, datetime, timedelta, timezone

        UTC = timezone.utc
        EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
        FIRST, LAST = 86400 * 3, int(datetime(2040, 12, 20, tzinfo=UTC).timestamp())
        hour, minute = map(int, sys.argv[1].split(":"))

        def changes(path):
            data = open(path, "rb").read()
            def header(at):
                return struct.unpack(">4s c 15x 6l", data[at:at + 44])
            _, version, utc, std, leap, times, types, chars = header(0)
            at, size = 44, 4
            if version >= b"2":
                at += times * 5 + types * 6 + chars + leap * 8 + std + utc
                _, version, utc, std, leap, times, types, chars = header(at)
                at, size = at + 44, 8
            instants = struct.unpack(">%d%s" % (times, "q" if size == 8 else "l"), data[at:at + times * size])
            # Tables end in 2037, slim ones where the rule of the footer begins: from there on the clocks are watched.
            return list(instants)

        def watched(zone, table):
            known = table[-1] if table else FIRST
            at = max(known + 1, FIRST)
            offset = lambda instant: local(zone, instant).utcoffset()
            before = offset(at)
            found = []
            while at < LAST + 86400 * 5:
                after = offset(at + 86400)
                if after != before:
                    low, high = at, at + 86400
                    while high - low > 1:
                        middle = (low + high) // 2
                        low, high = (middle, high) if offset(middle) == before else (low, middle)
                    found.append(high)
                    before = after
                at += 86400
            return table + found

        def seconds(moment):
            return int((moment - EPOCH).total_seconds())

        def local(zone, instant):
            return (EPOCH + timedelta(seconds=instant)).astimezone(zone)

        def occurrence(zone, table, day):
            wanted = datetime(day.year, day.month, day.day, hour, minute)
            first = wanted.replace(tzinfo=zone, fold=0)
            utc = first.astimezone(UTC)
            if utc.astimezone(zone).replace(tzinfo=None, fold=0) == wanted:
                return seconds(utc)
            before = seconds(wanted.replace(tzinfo=zone, fold=1).astimezone(UTC))
            after = seconds(utc)
            change = table[bisect.bisect_right(table, before)]
            assert before < change <= after, (zone, day)
            if day in (local(zone, change).date(), local(zone, change - 1).date()):
                return change
            return None  # the whole day is missing

        wantedZones = sys.argv[2:]
        seen = set()
        out = []
        for name in sorted(zoneinfo.available_timezones()):
            if wantedZones and name not in wantedZones:
                continue
            path = os.path.join("/usr/share/zoneinfo", name)
            if not os.path.exists(path) or name.startswith(("posix", "right", "Etc", "localtime", "posixrules", "Factory")):
                continue
            content = open(path, "rb").read()
            if content in seen and not wantedZones:
                continue
            seen.add(content)
            zone = zoneinfo.ZoneInfo(name)
            table = watched(zone, changes(path))
            known = {}
            for change in table:
                if not FIRST <= change <= LAST:
                    continue
                offsets = [int(local(zone, change + step).utcoffset().total_seconds()) for step in (-1, 0)]
                if offsets[0] == offsets[1]:
                    continue
                middle = local(zone, change).date()
                found = []
                for step in range(-2, 4):
                    day = middle + timedelta(days=step)
                    if day not in known:
                        known[day] = occurrence(zone, table, day)
                    if known[day] is not None:
                        found.append(known[day])
                out.append(" ".join(map(str, [name, change, *offsets, *found])))
        print("\\n".join(out))
        """
}
