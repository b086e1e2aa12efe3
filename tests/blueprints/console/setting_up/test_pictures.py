"""QR code images of manual channels: checked, stored, shown to payers, replaced and removed."""

import struct

import pytest

from models.tables.channel import Channel, ChannelPicture
from services.channels import pictures
from tests.blueprints.console.setting_up.filling import Page
from tests.support import words

MANUAL = 3
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
def manual(app):
    """The manual channel of the merchant `demo`."""
    return next(row for row in Channel.select() if row.driver == "manual")


@pytest.fixture
def upload(console, manual):
    """`upload(png())`: the page after the upload of an image for bank transfers."""

    def send(content, method="bank", client=console, channel=None):
        path = f"/console/channel/{channel or manual.id}"
        (form,) = [form for form in Page(client.get(path).text).forms if form.action.endswith(f"{method}/upload")]
        answer = client.post(form.action, data=form.fill({"picture": content}))
        return client.get(answer.headers["Location"]).text if answer.status_code == 303 else answer

    return send


@pytest.fixture
def shown(api, app, http, manual):
    """`shown()`: the response with the image on the payment page of a new order, or None."""

    def get(method="bank"):
        placed = api.buy("10.00", channel=manual.id, paychannel_paymethod=method).data
        page = http("GET", f"/addons/paychannel/pay/index?order_no={placed['order_no']}").text
        if 'class="picture"' not in page:
            return None
        address = page.partition('class="picture" src="')[2].partition('"')[0]
        return app.test_client().get(address.replace("&amp;", "&"))

    return get


@pytest.mark.parametrize(("content", "kind"), [(png(), "image/png"), (jpeg(), "image/jpeg")], ids=["PNG", "JPEG"])
def test_payers_see_an_uploaded_image(content, kind, upload, shown):
    assert shown() is None
    assert "The payment page shows the image." in upload(content)
    answer = shown()
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, kind)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "private, max-age=86400"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_a_new_image_replaces_the_old_one_at_another_address(upload, shown, console, manual):
    upload(png())
    first = console.get(f"/console/channel/{manual.id}").text
    upload(jpeg())
    (row,) = ChannelPicture.select()
    assert row.content_type == "image/jpeg"
    assert f"v={row.digest}" not in first
    assert f"v={row.digest}" in console.get(f"/console/channel/{manual.id}").text
    assert shown().headers["Content-Type"] == "image/jpeg"


def test_each_payment_method_has_its_own_image(upload, shown, fill, manual):
    fill(f"channel/{manual.id}", pay_method=["wxpay", "bank"])
    upload(png())
    assert shown("wxpay") is None
    assert shown("bank").status_code == 200


def test_an_image_has_priority_over_the_text_of_a_qr_code(upload, fill, manual, api, http):
    fill(f"channel/{manual.id}", pay_method=["wxpay"], config_qr_wxpay="wxp://static")
    placed = api.buy("10.00", channel=manual.id, paychannel_paymethod="wxpay").data
    path = f"/addons/paychannel/pay/index?order_no={placed['order_no']}"
    assert 'class="qr"' in http("GET", path).text
    upload(png(), "wxpay")
    text = http("GET", path).text
    assert 'class="qr"' not in text
    assert 'class="picture"' in text
    assert "Open WeChat on your phone, tap Scan and scan this code." in words(text)


def test_an_image_can_be_removed(upload, shown, console, manual, audited):
    upload(png())
    (form,) = [
        form for form in Page(console.get(f"/console/channel/{manual.id}").text).forms if form.action.endswith("remove")
    ]
    console.post(form.action, data=form.sent)
    assert shown() is None
    assert not ChannelPicture.select().exists()
    assert [line.split(" channel ")[0] for line in audited()[-2:]] == [
        "demo set QR code image",
        "demo remove QR code image",
    ]


@pytest.mark.parametrize("name", OTHER_FILES)
def test_a_file_of_another_kind_is_refused(name, upload):
    assert "not a PNG or JPEG image" in upload(OTHER_FILES[name])
    assert not ChannelPicture.select().exists()


@pytest.mark.parametrize("size", [(99, 300), (300, 4001), (0, 0), (2**32 - 1, 300)])
def test_an_image_of_unsuitable_dimensions_is_refused(size, upload):
    assert f"The image has {size[0]} × {size[1]} pixels." in upload(png(*size))


def test_a_large_file_is_refused_and_one_of_200_kb_is_stored(upload):
    assert "larger than 200 KB" in upload(png(more=bytes(pictures.LARGEST)))
    full = png()
    assert "Saved." in upload(full + bytes(pictures.LARGEST - len(full)))


def test_an_empty_form_asks_for_a_file(console, manual):
    forms = Page(console.get(f"/console/channel/{manual.id}").text).forms
    form = next(form for form in forms if form.action.endswith("/upload"))
    answer = console.post(form.action, data=form.sent)
    assert "Choose a file." in console.get(answer.headers["Location"]).text


def test_only_administrators_with_a_recent_sign_in_may_upload(viewer, sign_in, manual, send, flask):
    path = f"channel/{manual.id}/picture/bank/upload"
    assert "Upload image" not in viewer.get(f"/console/channel/{manual.id}").text
    assert send(path, client=viewer).status_code == 403
    assert "Password" in send(path, client=sign_in("demo", confirmed=False)).text
    assert not ChannelPicture.select().exists()


@pytest.mark.parametrize(
    "path", ["1/picture/bank", "99/picture/bank", "3/picture/..", "3/picture/cash", "3/picture/bank"]
)
def test_other_images_do_not_exist(path, page):
    page(f"channel/{path}", status=404)


def test_the_image_of_another_channel_is_not_served(app, api, http, upload):
    upload(png())
    order_no = api.buy("10.00").data["order_no"]
    own = app.test_client().get(f"/addons/paychannel/pay/qr-image?order_no={order_no}")
    assert (own.status_code, own.data == png()) == (200, False)
    for order_no in ("", "0" * 24):
        assert http("GET", f"/addons/paychannel/pay/qr-image?order_no={order_no}").status == 404


def test_payers_save_the_image_as_a_file(app, api, upload):
    upload(png())
    order_no = api.buy("10.00", channel=3, paychannel_paymethod="bank").data["order_no"]
    saved = app.test_client().get(f"/addons/paychannel/pay/qr-image?order_no={order_no}&save=1")
    assert saved.data == png()
    assert saved.headers["Content-Disposition"] == f'attachment; filename="{order_no}.png"'


def test_channels_with_a_provider_have_no_images(page):
    assert "QR code images" not in page("channel/2").text
