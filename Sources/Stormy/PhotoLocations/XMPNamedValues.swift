/// This extension finds locations in formats in which the name of a field is the value of an attribute or element. Examples are
/// Sony's `<Item name="Latitude" value="47:22:12.3"/>`, and `<key>latitude</key><value>47.37</value>`.
extension XMPScanner {
    private static let names: Set<String> = ["name", "key", "label"]
    /// Returns whether a value is the name of a property about the location of a picture, or the name of a coordinate.
    private static func isLocation(_ value: ArraySlice<UInt8>) -> Bool {
        guard value.count < 60, !value.contains(0x20) else { return false }
        return LocationNames.isLocation(value) || isNumber(value)
    }

    private static func isNumber(_ value: ArraySlice<UInt8>) -> Bool {
        if case .single(_, _) = CoordinateName(value) { true } else { false }
    }

    private static func isName(_ name: some Sequence<UInt8>) -> Bool {
        let name = Array(name)
        let local = name[((name.firstIndex(of: UInt8(ascii: ":")) ?? -1) + 1)...]
        return names.contains(String(decoding: local, as: UTF8.self).lowercased())
    }

    /// Records the values of an XML element. The name of the property is in an attribute of the element, or is the text of the
    /// preceding element.
    mutating func recordNamedValues(
        _ start: Int, _ name: [UInt8], _ attributes: [(name: Range<Int>, value: Range<Int>)], isClosed: Bool
    ) {
        let label = attributes.first { Self.isName(text[$0.name]) }?.value
        if let label, Self.isLocation(text[label]) {
            for attribute in attributes where attribute.value != label { recordLabeledValue(attribute.value, label) }
            if !isClosed { recordLabeledValue(content(from: position), label) }
        } else if !isClosed, Self.isName(name) {
            let label = content(from: position)
            guard Self.isLocation(text[label]), let end = next(UInt8(ascii: ">"), from: label.upperBound),
                let next = next(UInt8(ascii: "<"), from: end), next + 1 < text.count, text[next + 1] != UInt8(ascii: "/"),
                let open = self.next(UInt8(ascii: ">"), from: next), text[open - 1] != UInt8(ascii: "/")
            else { return }
            recordLabeledValue(content(from: open + 1), label)
        }
    }

    private func content(from start: Int) -> Range<Int> { start..<(next(UInt8(ascii: "<"), from: start) ?? text.count) }

    /// Records a value that contains digits or letters. The name of the value is not overwritten.
    private mutating func recordLabeledValue(_ value: Range<Int>, _ label: Range<Int>) {
        // A group of values has no value of its own, because each part of the group has a separate name.
        guard !value.isEmpty, text[value].contains(where: { $0 > 0x20 }) else { return }
        if Self.isNumber(text[label]), !LocationNames.isLocation(text[label]),
            !text[value].contains(where: CoordinateText.isDigit)
        {
            return
        }
        found.append(value)
        recordPlace(Array(text[label]), value)
    }
}
