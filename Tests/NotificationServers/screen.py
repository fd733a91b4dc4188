"""Pictures of a screen: pixels, differences from an empty desktop, and picture files."""
import subprocess


class Picture:
    """The pixels of a screen, three bytes for each pixel."""

    def __init__(self, width, height, data):
        self.width, self.height, self.data = width, height, data

    @classmethod
    def of_file(cls, source, environment=None):
        """Returns the picture that a command writes as PPM."""
        made = subprocess.run(source, capture_output=True, env=environment)
        if made.returncode or not made.stdout.startswith(b"P6"):
            raise RuntimeError(f"no picture of the screen: {made.stderr.decode(errors='replace')[-300:]}")
        words, place = [], 0
        while len(words) < 4:
            end = place
            while made.stdout[end:end + 1] not in (b" ", b"\n"):
                end += 1
            words.append(made.stdout[place:end])
            place = end + 1
        width, height = int(words[1]), int(words[2])
        return cls(width, height, made.stdout[place:place + width * height * 3])

    def row(self, number, left, right):
        start = number * self.width * 3
        return self.data[start + left * 3:start + right * 3]

    def save(self, path):
        """Saves the picture as PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["convert", "ppm:-", f"png:{path}"], check=True,
                       input=b"P6\n%d %d\n255\n" % (self.width, self.height) + self.data)

    def difference(self, other, region):
        """Returns the smallest box (left, top, right, bottom) of all different pixels in a region, or None if no pixel differs."""
        left, top, right, bottom = region
        box = None
        for number in range(top, bottom):
            one, two = self.row(number, left, right), other.row(number, left, right)
            if one == two:
                continue
            bits = int.from_bytes(one, "big") ^ int.from_bytes(two, "big")
            size = len(one)
            first = left + (size - (bits.bit_length() + 7) // 8) // 3
            last = left + (size - 1 - ((bits & -bits).bit_length() - 1) // 8) // 3
            if box is None:
                box = [first, number, last + 1, number + 1]
            else:
                box = [min(box[0], first), box[1], max(box[2], last + 1), number + 1]
        return tuple(box) if box else None

    def count_magenta(self, box):
        """Returns the number of magenta pixels in a box. Only the test's picture is magenta."""
        left, top, right, bottom = box
        count = 0
        for number in range(top, bottom):
            row = self.row(number, left, right)
            count += sum(1 for red, green, blue in zip(row[0::3], row[1::3], row[2::3]) if red > 180 and green < 80 and blue > 180)
        return count
