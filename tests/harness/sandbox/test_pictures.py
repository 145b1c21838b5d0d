"""Pictures of every usual kind are prepared for a model: upright, as large as it sees, in a format that every provider takes."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from deerflow.sandbox.converters import Converters, UnreadableError
from deerflow.sandbox.converters.pictures import MAX_SIDE

HEIC = base64.b85decode(
    b"0000SW^{RQXk}?*00000ZE0pPXk}?*ZE0a<0004fZDn*}000000000XXk=`10000000000aA{+700000000000000000000B57=IV*mgE07O6l0RRC200001p#T8@00000001Qb001LtX>Mi!000000RR916=`l}WdZ;I000310BCk&F#rGn01j|zbZr0t000010002}X>f9I0002pX>en20001XXm(>m0RwOV0058x000009`FGC{rLC*01pFT0096PKmiN^|NjGU00093kN^M!000939=ZZRVE_RDDnbDP18@KU0|1Z!00RI30{|YNAb|yz>g1-mxCm%4AOHXZ10VnZ0{|gn00967L;=Bbz=;3=025<xY;ta6Y<K_x01W^JfB*mh6lrsCWdHyG00000KmY&$KmY&$C}V74Z~y=RKmY&$0RR91AOHXW0RR91000000{{R2-~a#s0ssI25O8UDX#fBK00RgJ2mk;87-?{AVE_OC000000RRC7fdT^sga7~lEp23BbN~PVAt(W_8G!FerN95;h9CK@YyQ8o7yt6{Cw?S)f7awfZEp"
)
"""64 x 32 pixels, red on the left and blue on the right."""


def halves(mode: str = "RGB", size: tuple[int, int] = (64, 32)) -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", size, "red")
    image.paste("blue", (size[0] // 2, 0, *size))
    return image.convert(mode)


def written(image: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def colour(image: Image.Image, x: float, y: float) -> str:
    red, _, blue = image.convert("RGB").getpixel((int(x * (image.width - 1)), int(y * (image.height - 1))))  # type: ignore[misc]
    return "red" if red > blue + 100 else "blue" if blue > red + 100 else "other"


async def shown(converters: Converters, data: bytes, **options: Any) -> tuple[Image.Image, str]:
    picture = await converters.picture(data, "u", **options)
    image = Image.open(io.BytesIO(picture.data))
    assert image.get_format_mimetype() == picture.mime_type and image.format in ("PNG", "JPEG", "WEBP")
    return image, picture.about


@pytest.mark.parametrize("form", ["GIF", "BMP", "TIFF", "AVIF", "HEIC"])
async def test_formats_that_models_do_not_take_are_converted(converters: Converters, form: str) -> None:
    image, about = await shown(converters, HEIC if form == "HEIC" else written(halves(), form))
    assert image.size == (64, 32) and (colour(image, 0.2, 0.5), colour(image, 0.8, 0.5)) == ("red", "blue")
    assert about.startswith("64 x 32 pixels") and "shown to you as" in about


@pytest.mark.parametrize(
    ("orientation", "size", "red_at"), [(3, (64, 32), (0.9, 0.5)), (6, (32, 64), (0.5, 0.1)), (8, (32, 64), (0.5, 0.9))]
)
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
async def test_a_picture_stands_upright(
    converters: Converters, form: str, orientation: int, size: tuple[int, int], red_at: tuple[float, float]
) -> None:
    image, about = await shown(converters, written(halves(), form, exif=turned(orientation)))
    assert image.size == size and colour(image, *red_at) == "red"
    assert about.startswith(f"{size[0]} x {size[1]} pixels") and image.getexif().get(0x0112, 1) == 1


async def test_a_large_picture_has_the_size_that_models_see(converters: Converters) -> None:
    image, about = await shown(converters, written(halves(size=(4000, 1000)), "JPEG", exif=turned(6)))
    assert image.size == (MAX_SIDE // 4, MAX_SIDE) == (392, 1568) and about.startswith("1000 x 4000 pixels")


async def test_what_is_small_and_upright_is_sent_as_it_is(converters: Converters) -> None:
    for form in ("JPEG", "PNG", "WEBP"):
        data = written(halves(), form)
        assert (await converters.picture(data, "u")).data == data


ODD: dict[str, tuple[Callable[[], bytes], tuple[int, int]]] = {
    "sixteen bits": (lambda: written(Image.new("I;16", (8, 8), 32_000), "TIFF"), (100, 150)),
    "floats": (
        lambda: written(Image.linear_gradient("L").convert("F").point(lambda value: value * 100.0), "TIFF"),
        (100, 150),
    ),
    "cmyk": (lambda: written(Image.new("CMYK", (8, 8), (0, 0, 0, 128)), "TIFF"), (100, 150)),
    "palette": (lambda: written(Image.new("L", (8, 8), 128).convert("P"), "GIF"), (120, 135)),
}


@pytest.mark.parametrize("kind", ODD)
async def test_odd_pixels_keep_their_brightness(converters: Converters, kind: str) -> None:
    make, (least, most) = ODD[kind]
    image, _ = await shown(converters, make())
    grey = image.convert("L").resize((1, 1)).getpixel((0, 0))
    assert isinstance(grey, int | float) and least <= grey <= most


async def test_dark_letters_on_nothing_stay_readable(converters: Converters) -> None:
    noise = Image.effect_noise((1500, 1500), 90).convert("RGBA")
    noise.putalpha(0)
    image, _ = await shown(converters, written(noise, "PNG", compress_level=0))
    assert image.convert("RGBA").getpixel((700, 700))[3] == 0 or image.convert("L").getpixel((700, 700)) == 255  # type: ignore[index]


async def test_of_several_pictures_in_a_file_each_can_be_seen(converters: Converters) -> None:
    data = written(
        Image.new("RGB", (9, 9), "red"), "TIFF", save_all=True, append_images=[Image.new("RGB", (9, 9), "blue")]
    )
    first, about = await shown(converters, data)
    second, _ = await shown(converters, data, page=2)
    assert (colour(first, 0.5, 0.5), colour(second, 0.5, 0.5)) == ("red", "blue") and "1 of 2 pictures in it" in about
    with pytest.raises(UnreadableError, match="has 2 pages"):
        await converters.picture(data, "u", page=3)


@pytest.mark.parametrize(
    "data", [b"BM" + bytes(60), HEIC[:200], b"GIF89a" + bytes(20), b"II*\0" + b"\xff" * 40, b"<svg/>"]
)
async def test_a_damaged_picture_is_a_sentence(converters: Converters, data: bytes) -> None:
    with pytest.raises(UnreadableError, match="cannot be decoded"):
        await converters.picture(data, "u")
