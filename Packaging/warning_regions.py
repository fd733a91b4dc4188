#!/usr/bin/env python3
"""Makes the table of European warning regions that is part of the program.

    warning_regions.py REGIONS.json[.gz] ALIASES.json OUT.bin

The result is committed as `Sources/C/CWarningRegions/regions.bin`. `CWarningRegions.c` embeds the file.

Source of the data: `assets/geocodes.json` of the Python package `meteoalarm`, version 0.3.0. The regions are EUMETNET's (MeteoAlarm),
licence CC BY 4.0. REGIONS.json holds these outlines, simplified to about 400 m:

    {"regions": [[EMMA_ID, name, [[outer ring, hole…]…]]…]}, a ring is a list of [longitude, latitude]

ALIASES.json holds the other codes of the same areas: {"aliases": {"NUTS3/FRK28": "FR035", …}}. The aliases were found by area overlap.

Bulgaria: the Bulgarian EMMA_IDs and outlines do not agree, but the NUTS3 codes were found by outline. The table therefore stores the
Bulgarian outlines under their NUTS3 codes, with the names that Eurostat gives to the codes.

Ireland: Irish warnings carry FIPS 10-4 codes of counties, and the sea areas' own codes as FIPS codes. Both kinds are added as aliases.

Czechia, Slovakia, Spain: the names in the input have lost letters by wrong encodings. Czech and Slovak names are decoded again. Spanish
names are replaced by those that the Spanish service (AEMET) uses for the same zones.

Vienna: the input writes "Wien  1.,Innere Stadt". A name gets one space between words and after a comma.

Format (numbers with a fixed size are little-endian; "varint" is LEB128; signed varints are zigzag-coded):

    "SWR1", u32 regions, u32 aliases
    region: u32 bytes that follow, i32 west, south, east, north, text code, text name, varint polygons
        polygon: varint rings (the first is the outer ring, the others are holes)
        ring: varint corners, then longitude and latitude of each corner as signed varints, relative to the corner before
    alias: text "TYPE/VALUE", varint number of the region
    text: u8 bytes, UTF-8

Coordinates are counted in thousandths of a degree, which is the precision of the input (111 m from north to south). The last corner
of a ring is not repeated. A ring over the antimeridian continues beyond 180 degrees.
"""

import gzip
import json
import re
import struct
import sys

STEPS_PER_DEGREE = 1000
MOST_BYTES = 600_000
BULGARIA = {
    "BG311": "Vidin", "BG312": "Montana", "BG313": "Vratsa", "BG314": "Pleven", "BG315": "Lovech", "BG321": "Veliko Tarnovo",
    "BG322": "Gabrovo", "BG323": "Ruse", "BG324": "Razgrad", "BG325": "Silistra", "BG331": "Varna", "BG332": "Dobrich",
    "BG333": "Shumen", "BG334": "Targovishte", "BG341": "Burgas", "BG342": "Sliven", "BG343": "Yambol", "BG344": "Stara Zagora",
    "BG411": "Sofia (city)", "BG412": "Sofia (province)", "BG413": "Blagoevgrad", "BG414": "Pernik", "BG415": "Kyustendil",
    "BG421": "Plovdiv", "BG422": "Haskovo", "BG423": "Pazardzhik", "BG424": "Smolyan", "BG425": "Kardzhali",
}
# The names of the Irish counties. The key is the number after "EI" in the FIPS 10-4 code.
IRELAND = {
    1: "Carlow", 2: "Cavan", 3: "Clare", 4: "Cork", 6: "Donegal", 7: "Dublin", 10: "Galway", 11: "Kerry", 12: "Kildare", 13: "Kilkenny",
    14: "Leitrim", 15: "Laois", 16: "Limerick", 18: "Longford", 19: "Louth", 20: "Mayo", 21: "Meath", 22: "Monaghan", 23: "Offaly",
    24: "Roscommon", 25: "Sligo", 26: "Tipperary", 27: "Waterford", 29: "Westmeath", 30: "Wexford", 31: "Wicklow",
}
# The names of the Spanish zones. The key is the number of the code.
SPAIN = {
    70: "Valle del Almanzora y Los Vélez", 72: "Poniente y Almería Capital", 75: "Campiña gaditana", 79: "Campiña cordobesa",
    80: "Subbética cordobesa", 86: "Andévalo y Condado", 90: "Valle del Guadalquivir de Jaén", 91: "Capital y Montes de Jaén",
    95: "Axarquía", 97: "Campiña sevillana", 102: "Albarracín y Jiloca", 103: "Gúdar y Maestrazgo", 104: "Bajo Aragón de Teruel",
    106: "Ibérica zaragozana", 118: "Levante mallorquín", 131: "Área metropolitana de Tenerife", 133: "Litoral cántabro",
    134: "Liébana", 137: "Meseta de Ávila", 138: "Sistema Central de Ávila", 139: "Sur de Ávila",
    140: "Cordillera Cantábrica de Burgos", 142: "Condado de Treviño", 144: "Ibérica de Burgos",
    145: "Cordillera Cantábrica de León", 146: "Bierzo de León", 147: "Meseta de León", 148: "Cordillera Cantábrica de Palencia",
    155: "Ibérica de Soria", 161: "La Mancha albaceteña", 163: "Hellín y Almansa", 169: "Serranía de Cuenca",
    171: "Serranía de Guadalajara", 179: "Depresión central de Barcelona", 184: "Ampurdán", 186: "Valle de Arán",
    188: "Depresión central de Lleida", 189: "Depresión central de Tarragona", 195: "La Siberia extremeña",
    198: "Norte de Cáceres", 199: "Tajo y Alagón", 200: "Meseta cacereña", 201: "Villuercas y Montánchez",
    202: "Noroeste de A Coruña", 203: "Oeste de A Coruña", 204: "Interior de A Coruña", 205: "Suroeste de A Coruña", 206: "A Mariña",
    208: "Montaña de Lugo", 211: "Miño de Ourense", 213: "Montaña de Ourense", 217: "Miño de Pontevedra",
    224: "Valle del Guadalentín, Lorca y Águilas", 225: "Campo de Cartagena y Mazarrón", 226: "Vertiente cantábrica de Navarra",
    230: "Cuenca del Nervión", 238: "Ibérica riojana", 242: "Interior norte de Castellón", 243: "Litoral norte de Castellón",
    244: "Interior sur de Castellón", 245: "Litoral sur de Castellón", 842: "Costa - Litoral cántabro", 845: "Costa - A Mariña",
    846: "Costa - Noroeste de A Coruña", 847: "Costa - Oeste de A Coruña", 848: "Costa - Suroeste de A Coruña",
    850: "Costa - Miño de Pontevedra", 855: "Costa - Axarquía", 857: "Costa - Poniente y Almería Capital",
    859: "Costa - Valle del Guadalentín, Lorca y Águilas", 860: "Costa - Campo de Cartagena y Mazarrón",
    865: "Costa - Litoral sur de Castellón", 866: "Costa - Litoral norte de Castellón",
    884: "Costa - Área metropolitana de Tenerife", 890: "Costa - Ampurdán",
}


def name_of(code: str, name: str) -> str:
    """Returns the name of a region with restored letters and single spaces."""
    return " ".join(re.sub(r",(?=\S)", ", ", spelled(code, name)).split())


def spelled(code: str, name: str) -> str:
    if code in BULGARIA:
        return BULGARIA[code]
    if code.startswith("ES"):
        return SPAIN.get(int(code[2:]), name)
    if code.startswith(("CZ", "SK")):
        try:
            return b"".join(c.encode("latin-1" if 0x80 <= ord(c) <= 0x9F else "cp1252") for c in name).decode("cp1250")
        except UnicodeError:
            return name
    return name


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def signed(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def text(value: str) -> bytes:
    data = value.encode()
    assert len(data) <= 255, value
    return bytes([len(data)]) + data


def steps(ring) -> list[tuple[int, int]]:
    """Returns the corners of a ring in steps, without repeated corners and with longitudes that never jump."""
    corners = []
    turn = 0
    for longitude, latitude in ring:
        corner = (round(longitude * STEPS_PER_DEGREE) + turn, round(latitude * STEPS_PER_DEGREE))
        if corners:
            full = 360 * STEPS_PER_DEGREE
            jump = round((corner[0] - corners[-1][0]) / full) * full
            turn -= jump
            corner = (corner[0] - jump, corner[1])
        if not corners or corners[-1] != corner:
            corners.append(corner)
    if len(corners) > 1 and corners[0] == corners[-1]:
        corners.pop()
    return corners


def region(code: str, name: str, polygons) -> bytes:
    body = bytearray()
    kept = []
    for polygon in polygons:
        rings = [steps(ring) for ring in polygon]
        # If an outer ring is smaller than a step, the polygon has no area.
        if len(rings[0]) >= 3:
            kept.append([ring for ring in rings if len(ring) >= 3])
    body += varint(len(kept))
    for polygon in kept:
        body += varint(len(polygon))
        for ring in polygon:
            body += varint(len(ring))
            before = (0, 0)
            for corner in ring:
                body += signed(corner[0] - before[0]) + signed(corner[1] - before[1])
                before = corner
    corners = [corner for polygon in kept for ring in polygon for corner in ring]
    assert corners, code
    longitudes, latitudes = [corner[0] for corner in corners], [corner[1] for corner in corners]
    box = struct.pack("<4i", min(longitudes), min(latitudes), max(longitudes), max(latitudes))
    record = box + text(code) + text(name) + bytes(body)
    return struct.pack("<I", len(record)) + record


def main() -> int:
    regions_path, aliases_path, out = sys.argv[1:]
    opened = gzip.open if regions_path.endswith(".gz") else open
    with opened(regions_path, "rt", encoding="utf-8") as file:
        regions = json.load(file)["regions"]
    with open(aliases_path, encoding="utf-8") as file:
        aliases = json.load(file)["aliases"]
    bulgarian = {region: alias.removeprefix("NUTS3/") for alias, region in aliases.items() if region.startswith("BG")}
    assert sorted(bulgarian.values()) == sorted(BULGARIA), "a Bulgarian province is missing"
    coded = [(bulgarian.get(code, code), name, polygons) for code, name, polygons in regions]
    renamed = sorted(((code, name_of(code, name), polygons) for code, name, polygons in coded), key=lambda entry: entry[0])
    irish = {name: code for code, name, _ in renamed if code.startswith("IE")}
    aliases |= {f"FIPS/EI{number:02}": irish[f"County {name}"] for number, name in IRELAND.items()}
    aliases |= {f"FIPS/{code}": code for code, _, _ in renamed if code.startswith("EI")}
    numbers = {code: number for number, (code, _, _) in enumerate(renamed)}
    data = b"SWR1" + struct.pack("<II", len(renamed), len(aliases))
    data += b"".join(region(*entry) for entry in renamed)
    for alias, code in sorted(aliases.items()):
        data += text(alias) + varint(numbers[bulgarian.get(code, code)])
    assert len(data) <= MOST_BYTES, f"{len(data)} bytes"
    with open(out, "wb") as file:
        file.write(data)
    print(f"{out}: {len(renamed)} regions, {len(aliases)} aliases, {len(data)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
