/// The layers of Photoshop in a TIFF file (tag 37724). The value consists of a name, and of blocks with a signature, a key and a
/// size. The channels of the layers are pixels.
struct LayerPixels {
    private let view: ByteView

    init(_ view: ByteView) { self.view = view }

    func register() {
        let isLarge = view.has("Adobe Photoshop Document Data V0002\0", at: 0)
        guard isLarge || view.has("Adobe Photoshop Document Data Block\0", at: 0) else { return }
        var position = 36
        // Numbers and names have the byte order of the TIFF file.
        while let little = mark(at: position) {
            let key = String(little ? String(view.name(position + 4).reversed()) : view.name(position + 4))
            let isLayers = ["Layr", "Lr16", "Lr32"].contains(key)
            let width = isLarge && (isLayers || ["LMsk", "Mt16", "Mt32", "Mtrn", "Alph"].contains(key)) ? 8 : 4
            guard let size = view.number(position + 8, width, little: little) else { return }
            let content = view.part(position + 8 + width, size)
            if isLayers { markLayerPixels(content, little, isLarge ? 8 : 4) }
            position += 8 + width + (size + 3) / 4 * 4
        }
    }

    private func mark(at position: Int) -> Bool? {
        switch view.name(position) {
        case "8BIM", "8B64": false
        case "MIB8", "46B8": true
        default: nil
        }
    }

    /// Marks the channels of layers as pixels. The channels of all layers are stored after the records of all layers.
    private func markLayerPixels(_ content: ByteView, _ little: Bool, _ width: Int) {
        guard let stored = content.number(0, 2, little: little) else { return }
        var (position, sizes) = (2, 0)
        for _ in 0..<min(stored < 0x8000 ? stored : 0x10000 - stored, 10_000) {
            guard let channels = content.number(position + 16, 2, little: little), channels <= 64 else { return }
            for channel in 0..<channels {
                guard let size = content.number(position + 18 + channel * (2 + width) + 2, width, little: little) else { return }
                sizes += min(size, content.count)
            }
            position += 18 + channels * (2 + width)
            guard mark(at: position, in: content), let extra = content.number(position + 12, 4, little: little) else { return }
            position += 16 + extra
        }
        content.recordPixels(position, sizes)
    }

    private func mark(at position: Int, in content: ByteView) -> Bool { ["8BIM", "MIB8"].contains(content.name(position)) }
}
