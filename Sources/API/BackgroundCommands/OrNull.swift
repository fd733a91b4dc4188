/// A value that is printed as null when it is not there: readers of our JSON find every key every time.
package struct OrNull<Value: Encodable>: Encodable {
    package let value: Value?

    package init(_ value: Value?) { self.value = value }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let value { try container.encode(value) } else { try container.encodeNil() }
    }
}
