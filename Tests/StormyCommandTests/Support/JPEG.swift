import Foundation

/// Small JPEG pictures.
enum JPEG {
    /// Returns a picture of one pixel, with its name as a comment. Pictures with different names have different bytes.
    ///
    /// - Parameter isLocated: `true` if the picture has a GPS position, which the photo cleaner removes.
    static func picture(_ name: String, isLocated: Bool = false) -> Data {
        var picture = start
        if isLocated { picture += segment(0xE1, position) }
        picture += segment(0xFE, Data(name.utf8))
        picture += pixel.dropFirst(start.count)
        return picture
    }

    /// A picture without pixels. The photo cleaner accepts this picture.
    static var withoutPosition: Data { start + Data([0xFF, 0xD9]) + Data(repeating: 7, count: 1_000) }

    private static let start = Data([0xFF, 0xD8])

    private static func segment(_ marker: UInt8, _ content: Data) -> Data {
        let length = content.count + 2
        let head: [UInt8] = [0xFF, marker, UInt8(length >> 8), UInt8(length & 0xFF)]
        return Data(head) + content
    }

    /// An Exif block whose first TIFF directory points to a GPS directory with a latitude.
    private static var position: Data {
        func little16(_ value: Int) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }
        func little32(_ value: Int) -> [UInt8] { little16(value & 0xFFFF) + little16(value >> 16) }
        func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: Int) -> [UInt8] {
            little16(tag) + little16(type) + little32(count) + little32(value)
        }
        let first = little16(1) + entry(0x8825, 4, 1, 26) + little32(0)
        let gps = little16(1) + entry(2, 5, 3, 44) + little32(0)
        let header: [UInt8] = Array("Exif".utf8) + [0, 0, 0x49, 0x49, 0x2A, 0x00]
        let block: [UInt8] = header + little32(8) + first + gps + Array(repeating: 1, count: 24)
        return Data(block)
    }

    /// An HDR photo with a position and a gain map. The XMP block follows the index of the pictures.
    static let withGainMap = Data(
        base64Encoded: """
            /9j/4QCaRXhpZgAASUkqAAgAAAACAA8BAgAFAAAAJgAAACWIBAABAAAALAAAAAAAAABUZXN0AAAEAAEAAgACAAAATgAAAAIABQADAAAAYgAAAAMAAgAC\
            AAAARQAAAAQABQADAAAAegAAAAAAAAAvAAAAAQAAABYAAAABAAAA0gQAAGQAAAAIAAAAAQAAACAAAAABAAAALhYAAGQAAAD/4gBYTVBGAE1NACoAAAAI\
            AAOwAAAHAAAABDAxMDCwAQAEAAAAAQAAAAKwAgAHAAAAIAAAADIAAAAAAAMAAAAABUcAAAAAAAAAAAAAAAAAAAD5AAAEoQAAAAD/4QFGaHR0cDovL25z\
            LmFkb2JlLmNvbS94YXAvMS4wLwA8P3hwYWNrZXQgYmVnaW49IiIgaWQ9Ilc1TTBNcENlaGlIenJlU3pOVGN6a2M5ZCI/Pjx4OnhtcG1ldGEgeG1sbnM6\
            eD0iYWRvYmU6bnM6bWV0YS8iPjxyZGY6UkRGIHhtbG5zOnJkZj0iaHR0cDovL3d3dy53My5vcmcvMTk5OS8wMi8yMi1yZGYtc3ludGF4LW5zIyI+PHJk\
            ZjpEZXNjcmlwdGlvbiByZGY6YWJvdXQ9IiIgeG1sbnM6aGRyZ209Imh0dHA6Ly9ucy5hZG9iZS5jb20vaGRyLWdhaW4tbWFwLzEuMC8iIGhkcmdtOlZl\
            cnNpb249IjEuMCIvPjwvcmRmOlJERj48L3g6eG1wbWV0YT48P3hwYWNrZXQgZW5kPSJ3Ij8+/9sAQwADAgICAgIDAgICAwMDAwQGBAQEBAQIBgYFBgkI\
            CgoJCAkJCgwPDAoLDgsJCQ0RDQ4PEBAREAoMEhMSEBMPEBAQ/9sAQwEDAwMEAwQIBAQIEAsJCxAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ\
            EBAQEBAQEBAQEBAQEBAQEBAQ/8AAEQgAQABgAwERAAIRAQMRAf/EABYAAQEBAAAAAAAAAAAAAAAAAAAGB//EABkQAAIDAQAAAAAAAAAAAAAAAAAVAVJi\
            of/EABcBAQEBAQAAAAAAAAAAAAAAAAAFBgj/xAAYEQEAAwEAAAAAAAAAAAAAAAAAExVhFP/aAAwDAQACEQMRAD8A2Fts4Sr8dJTDbYr8JhtsV+Ew22K/\
            CYbbFfhMNtivwmG2xX4TDbYr8JhtsV+Ew22K/CYbbFfhMNtivwmRLffTb1+I84330V+E4330V+E4330V+E4330V+E4330V+E4330V+E4330V+E4330V+\
            E4330V+E4330V+E4330V+E6Jb76bfgxInG++jgwnG++jgwnG++jgwnG++jgwnG++jgwnG++jgwnG++jgwnG++jgwnG++jgwnG++jgwnG++jgwnRTjRt6\
            /EiYcaFfhMONCvwmHGhX4TDjQr8JhxoV+Ew40K/CYcaFfhMONCvwmHGhX4TDjQr8JhxoV+EyJbRc2/BiPMNouODCYbRccGEw2i44MJhtFxwYTDaLjgwm\
            G0XHBhMNouODCYbRccGEw2i44MJhtFxwYTDaLjgwmRTbZtq/EicbbFfhONtivwnG2xX4TjbYr8JxtsV+E422K/CcbbFfhONtivwnG2xX4TjbYr8JxtsV\
            +E6JbRc3FfiRONouK/CcbRcV+E42i4r8JxtFxX4TjaLivwnG0XFfhONouK/CcbRcV+E42i4r8JxtFxX4TjaLivwnRLebG24MR5hvNhwYTDebDgwmG82H\
            BhMN5sODCYbzYcGEw3mw4MJhvNhwYTDebDgwmG82HBhMN5sODCYbzYcGEz//2f/Y/+AAEEpGSUYAAQEAAAEAAQAA/9sAQwADAgICAgIDAgICAwMDAwQG\
            BAQEBAQIBgYFBgkICgoJCAkJCgwPDAoLDgsJCQ0RDQ4PEBAREAoMEhMSEBMPEBAQ/8AACwgAIAAwAQERAP/EABYAAQEBAAAAAAAAAAAAAAAAAAAICf/E\
            ABoQAAICAwAAAAAAAAAAAAAAAAAXAWNkkaH/2gAIAQEAAD8A0GZeRGwy8iNhl5EbDLyI2GXkRsMvIjZKDLv6GXf0Mu/oZd/Qy7+hl39JPZd/Qy7+hl39\
            DLv6GXf0Mu/pJ7LyJ2GXkTsMvInYZeROwy8idhl5E7P/2Q==
            """)!

    /// A gray pixel, made with `convert -size 1x1 xc:gray -strip -quality 30`.
    private static let pixel = Data(
        base64Encoded: """
            /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5mo\
            q6T/wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAAf/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AH//Z
            """)!
}

/// Pictures of one pixel in other formats.
enum OtherPicture {
    static let png = Data(
        base64Encoded: """
            iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVQI12OoAwAAgAB/zkuMpAAAAABJRU5ErkJggg==
            """)!
    static let webP = Data(base64Encoded: "UklGRh4AAABXRUJQVlA4TBEAAAAvAAAAAAdQv/rVr/+BiOh/AAA=")!
    /// A HEIC picture whose Exif item is inside another item. The photo cleaner does not change an Exif item inside another item,
    /// so the photo is not uploaded.
    static let heic: Data = {
        func box(_ type: String, _ content: Data) -> Data {
            withUnsafeBytes(of: UInt32(content.count + 8).bigEndian) { Data($0) } + Data(type.utf8) + content
        }
        let entry = box("infe", Data([2, 0, 0, 0, 0, 1, 0, 0]) + Data("Exif\0".utf8))
        let items = box("iinf", Data([0, 0, 0, 0, 0, 1]) + entry)
        let locations = box("iloc", Data([1, 0, 0, 0, 0x44, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]))
        return box("ftyp", Data("heic\0\0\0\0mif1heic".utf8)) + box("meta", Data(count: 4) + items + locations)
            + box("mdat", Data(repeating: 7, count: 900))
    }()
}
