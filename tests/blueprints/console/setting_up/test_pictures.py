"""QR code images of manual channels: checked, stored, shown to payers, replaced and removed."""

import struct

import pytest

from models.tables.channel import ChannelPicture
from services.channels import pictures
from tests.blueprints.console.setting_up.filling import Page
from tests.support import words

MANUAL, CHANNEL = 3, "/console/channel/3"
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
OTHER_FILES = {
    "GIF": b"GIF89a" + bytes(100),
    "SVG": b'<svg xmlns="http://www.w3.org/2000/svg" width="300" height="300"/>',
    "HTML": b"<html><script>alert(1)</script></html>",
    "PNG without header": PNG[:12],
    "PNG cut off": PNG + b"\x00\x00",
    "JPEG cut off": b"\xff\xd8\xff\xe0\x00\x10JFIF",
    "JPEG without frame": b"\xff\xd8\xff\xd9\x00\x00",
    "JPEG with an empty segment": b"\xff\xd8\xff\xe0\x00",
}


def png(width=300, height=400, more=b"x"):
    return PNG + struct.pack(">II", width, height) + more


def jpeg(width=300, height=400):
    segment = b"\xff\xe0\x00\x10JFIF" + bytes(10)
    frame = b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", height, width) + bytes(10)
    return b"\xff\xd8" + segment + b"\xff" + frame


@pytest.fixture
def upload(console):
    """`upload(png())`: the page after the upload of an image for bank transfers."""

    def send(content, method="bank"):
        (form,) = [form for form in Page(console.get(CHANNEL).text).forms if form.action.endswith(f"{method}/upload")]
        answer = console.post(form.action, data=form.fill({"picture": content}) if content is not None else form.sent)
        return console.get(answer.headers["Location"]).text

    return send


@pytest.fixture
def shown(api, app, http):
    """`shown()`: the response with the image on the payment page of a new order, or None."""

    def get(method="bank"):
        placed = api.buy("10.00", channel=MANUAL, paychannel_paymethod=method).data
        page = http("GET", f"/addons/paychannel/pay/index?order_no={placed['order_no']}").text
        if 'class="picture"' not in page:
            return None
        address = page.partition('class="picture" src="')[2].partition('"')[0]
        return app.test_client().get(address.replace("&amp;", "&"))

    return get


def test_payers_see_an_uploaded_image_until_another_one_replaces_it_or_it_is_removed(upload, shown, console, audited):
    assert shown() is None
    assert "The payment page shows the image." in upload(png())
    answer, first = shown(), console.get(CHANNEL).text
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "private, max-age=86400"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    upload(jpeg())
    (row,) = ChannelPicture.select()
    second = console.get(CHANNEL).text
    assert (f"v={row.digest}" in first, f"v={row.digest}" in second) == (False, True), "at another address"
    assert shown().headers["Content-Type"] == "image/jpeg"
    (form,) = [form for form in Page(second).forms if form.action.endswith("remove")]
    console.post(form.action, data=form.sent)
    assert (shown(), ChannelPicture.select().count()) == (None, 0)
    told = [line.split(" channel ")[0] for line in audited() if "QR code image" in line]
    assert told == [*["demo set QR code image"] * 2, "demo remove QR code image"]


def test_a_payment_method_has_its_own_image_which_has_priority_over_a_text(upload, shown, fill, api, http):
    fill(f"channel/{MANUAL}", pay_method=["wxpay", "bank"], config_qr_wxpay="wxp://static")
    upload(png())
    assert (shown("wxpay"), shown("bank").status_code) == (None, 200)
    placed = api.buy("10.00", channel=MANUAL, paychannel_paymethod="wxpay").data
    path = f"/addons/paychannel/pay/index?order_no={placed['order_no']}"
    assert 'class="qr"' in http("GET", path).text
    upload(png(), "wxpay")
    text = http("GET", path).text
    assert ('class="qr"' in text, 'class="picture"' in text) == (False, True)
    assert "Open WeChat on your phone, tap Scan and scan this code." in words(text)


def test_a_file_of_another_kind_or_of_unsuitable_size_is_refused(upload):
    for name, content in OTHER_FILES.items():
        assert "not a PNG or JPEG image" in upload(content), name
    for size in ((99, 300), (300, 4001), (0, 0), (2**32 - 1, 300)):
        assert f"The image has {size[0]} × {size[1]} pixels." in upload(png(*size))
    assert "Choose a file." in upload(None)
    assert "larger than 200 KB" in upload(png(more=bytes(pictures.LARGEST)))
    assert not ChannelPicture.select().exists()
    full = png()
    assert "Saved." in upload(full + bytes(pictures.LARGEST - len(full)))


def test_only_administrators_with_a_recent_sign_in_may_upload(viewer, sign_in, send, page):
    assert "Upload image" not in viewer.get(CHANNEL).text
    late = send(f"channel/{MANUAL}/picture/bank/upload", client=sign_in("demo", confirmed=False))
    assert ("Password" in late.text, ChannelPicture.select().count()) == (True, 0)
    for other in ("1/picture/bank", "99/picture/bank", "3/picture/..", "3/picture/cash", "3/picture/bank"):
        page(f"channel/{other}", status=404)
    assert "QR code images" not in page("channel/2").text, "it has a provider"


def test_payers_save_the_image_of_their_own_channel_as_a_file(app, api, http, upload):
    upload(png())
    image = "/addons/paychannel/pay/qr-image"
    order_no = api.buy("10.00", channel=MANUAL, paychannel_paymethod="bank").data["order_no"]
    saved = app.test_client().get(f"{image}?order_no={order_no}&save=1")
    assert saved.data == png()
    assert saved.headers["Content-Disposition"] == f'attachment; filename="{order_no}.png"'
    elsewhere = app.test_client().get(f"{image}?order_no={api.buy('10.00').data['order_no']}")
    assert (elsewhere.status_code, elsewhere.data == png()) == (200, False)
    for unknown in ("", "0" * 24):
        assert http("GET", f"{image}?order_no={unknown}").status == 404
