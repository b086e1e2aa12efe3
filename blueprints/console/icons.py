"""The icons of the console: lines on a square of 24 by 24, drawn by the macro `icon` of `console/parts.html`."""

from __future__ import annotations

from markupsafe import Markup

ICONS = {
    # pages
    "overview": '<path d="M3.5 3.5h7v9h-7zM13.5 3.5h7v5h-7zM13.5 11.5h7v9h-7zM3.5 15.5h7v5h-7z"/>',
    "orders": '<path d="M5 3.5h14v17l-2.3-1.6-2.4 1.6-2.3-1.6-2.3 1.6-2.4-1.6L5 20.5zM8.5 8h7M8.5 12h7"/>',
    "payouts": '<path d="M12 14V3.5M8 7.5l4-4 4 4M4 13v7.5h16V13"/>',
    "refunds": '<path d="M4 9.5h11a5 5 0 0 1 0 10H8M8 5.5l-4 4 4 4"/>',
    "claims": '<path d="M2.5 6h19v12h-19zM8 12.2l2.7 2.7L16 9.5"/>',
    "exceptions": '<path d="M12 3.5 21.5 20h-19zM12 10v4.5M12 17v.3"/>',
    "callbacks": '<path d="M3.5 5h17v11h-9L7 20v-4H3.5zM8 10.5h8M13 7.5l3 3-3 3"/>',
    "balances": '<path d="M3.5 6.5h14v-3h-12a2 2 0 0 0-2 2v13a2 2 0 0 0 2 2h15v-14h-3M16 13.5h.5"/>',
    "account_balances": (
        '<path d="M3.5 4.5h17v13h-17zM6.5 17.5V20M17.5 17.5V20M12 7.8v1M15.2 11h-1"/><circle cx="12" cy="11" r="3.2"/>'
    ),
    "entries": '<path d="M6.5 3.5h13v17h-13a2 2 0 0 1-2-2v-13a2 2 0 0 1 2-2zM8.5 3.5v17M12 8h4.5M12 12h4.5"/>',
    "merchants": (
        '<path d="M4.5 11v9.5h15V11M3 9.5l1.5-6h15l1.5 6a3 3 0 0 1-6 0 3 3 0 0 1-6 0 3 3 0 0 1-6 0zM10 20.5v-5h4v5"/>'
    ),
    "channels": '<path d="M2.5 5.5h19v13h-19zM2.5 10h19M6 15h4"/>',
    "accounts": '<path d="M3 9.5 12 4l9 5.5zM5.5 9.5v8M10 9.5v8M14 9.5v8M18.5 9.5v8M3 20.5h18"/>',
    "team": (
        '<circle cx="9" cy="8" r="3.5"/>'
        '<path d="M2.5 20v-1.5a5 5 0 0 1 5-4h3a5 5 0 0 1 5 4V20"/>'
        '<path d="M16 4.8a3.5 3.5 0 0 1 0 6.4M18 14.8a5 5 0 0 1 3.5 3.7V20"/>'
    ),
    "audit": (
        '<path d="M5 3.5h14v8M5 3.5v17h6M8.5 8h7M8.5 12h4"/><circle cx="16" cy="17" r="3"/><path d="M18.2 19.2 21 22"/>'
    ),
    "earnings": '<path d="M3.5 20.5h17M5.5 17l5-5.5 3.5 3 6-8M15.5 6.5H20V11"/>',
    "statements": '<path d="M5 3.5h9.5L19 8v12.5H5zM14 3.5V8.5h5M8.5 13v4M12 11v6M15.5 14.5V17"/>',
    "bills": '<path d="M5.5 3.5h13v17l-2.2-1.5-2.1 1.5-2.2-1.5-2.2 1.5-2.1-1.5-2.2 1.5zM9 8.5h6M9 12.5h6"/>',
    "differences": '<path d="M4.5 9h15M4.5 15h15M15.5 4.5l-7 15"/>',
    "reconcile": '<path d="M12 4v16.5M7 20.5h10M4 7.5l8-2 8 2M4 7.5 1.8 13.5h4.4zM20 7.5l-2.2 6h4.4z"/>',
    "notifications": '<path d="M5.5 17V11a6.5 6.5 0 0 1 13 0v6l1.5 1.5H4zM10 21h4M12 4.5V2.5"/>',
    "page": '<path d="M5 3.5h9.5L19 8v12.5H5zM14 3.5V8.5h5"/>',
    # states
    "well": '<circle cx="12" cy="12" r="9"/><path d="M8 12.3l2.8 2.8L16 9.5"/>',
    "info": '<circle cx="12" cy="12" r="9"/><path d="M12 11v5.5M12 7.5v.3"/>',
    "soon": '<path d="M12 3.5 21.5 20h-19zM12 10v4.5M12 17v.3"/>',
    "urgent": '<path d="M8.3 3h7.4L21 8.3v7.4L15.7 21H8.3L3 15.7V8.3zM12 7.5v5.5M12 16.2v.3"/>',
    # actions
    "search": '<circle cx="10.5" cy="10.5" r="6.5"/><path d="M15.5 15.5 21 21"/>',
    "menu": '<path d="M4 6.5h16M4 12h16M4 17.5h16"/>',
    "plus": '<path d="M12 5v14M5 12h14"/>',
    "filter": '<path d="M3.5 6h17M7 12h10M10 18h4"/>',
    "download": '<path d="M12 3.5V15M7.5 10.5 12 15l4.5-4.5M4 16v4.5h16V16"/>',
    "upload": '<path d="M12 15V3.5M7.5 8 12 3.5 16.5 8M4 16v4.5h16V16"/>',
    "send": '<path d="M3.5 4.5 21 12 3.5 19.5 6 12zM6 12h7"/>',
    "bookmark": '<path d="M6 3.5h12v17l-6-4.5-6 4.5z"/>',
    "back": '<path d="M14.5 5.5 8 12l6.5 6.5"/>',
    "next": '<path d="M9.5 5.5 16 12l-6.5 6.5"/>',
    "user": '<circle cx="12" cy="8" r="4"/><path d="M4 20.5v-1a6 6 0 0 1 6-5h4a6 6 0 0 1 6 5v1"/>',
    "help": '<circle cx="12" cy="12" r="9"/><path d="M9.3 9.5a2.7 2.7 0 1 1 3.9 2.4c-.8.4-1.2.9-1.2 1.9M12 16.7v.3"/>',
    "key": '<circle cx="8" cy="15.5" r="4.5"/><path d="M11.3 12.3 20 3.5M16 7.5l3 3"/>',
    "lock": '<path d="M5 10.5h14v10H5zM8 10.5V7.5a4 4 0 0 1 8 0v3M12 14.5v2"/>',
    "language": '<circle cx="12" cy="12" r="9"/><path d="M3 12h18M12 3c5 5 5 13 0 18M12 3c-5 5-5 13 0 18"/>',
    "devices": '<path d="M2.5 4.5h14v5M2.5 4.5v11h8M6.5 19.5h4M14.5 12.5h7v8h-7z"/>',
    "sign-out": '<path d="M13.5 3.5h-9v17h9M10 12h11M17 8l4 4-4 4"/>',
    "keyboard": '<path d="M2.5 5.5h19v13h-19zM6 9.5h.3M10 9.5h.3M14 9.5h.3M18 9.5h.3M7.5 14.5h9"/>',
}


def drawn(name: str) -> Markup:
    """Return the lines of an icon as SVG. Raises KeyError for an unknown name."""
    return Markup(ICONS[name])
