"""The CSV files in ``examples/``: plausible, the same on every machine, with a few dirty rows as real exports have.

``python -m bench.sample_data`` writes them.
"""

from __future__ import annotations

import csv
import datetime
import io
import random
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"
REGIONS = {"North": 1.0, "South": 0.8, "West": 1.3, "East": 0.6}
PRODUCTS = {
    "Trail Shoe": ("Footwear", 89.9),
    "Road Shoe": ("Footwear", 119.0),
    "Rain Jacket": ("Apparel", 139.5),
    "Merino Shirt": ("Apparel", 64.9),
    "Running Socks": ("Apparel", 14.9),
    "Head Torch": ("Gear", 44.0),
    "Water Bottle": ("Gear", 17.5),
    "Race Belt": ("Gear", 24.9),
}
CHANNELS = ("web", "web", "web", "store", "store", "marketplace")


def sales() -> str:
    """500 orders of 2025, five of them dirty, and one line that was exported twice."""
    chance = random.Random(2025)
    rows = [_order(number, chance) for number in range(1, 501)]
    rows.sort(key=lambda row: row["date"])
    for row, key, value in (
        (41, "quantity", ""),
        (130, "unit_price", "n/a"),
        (222, "quantity", "-2"),
        (317, "region", ""),
    ):
        rows[row][key] = value
    rows[401]["unit_price"] = "64,90 EUR"
    rows.insert(268, dict(rows[267]))
    return _csv(rows)


def expenses() -> str:
    """24 expenses of one month, one without an amount."""
    chance = random.Random(3)
    vendors = {"Travel": "Night Rail", "Software": "Cloudware", "Office": "Paper & Pens", "Catering": "Corner Bakery"}
    rows = []
    for number in range(1, 25):
        category = chance.choice(list(vendors))
        amount = round(chance.uniform(8, 90) * (4 if category == "Travel" else 1), 2)
        day = datetime.date(2025, 3, 1) + datetime.timedelta(days=number)
        row = {"receipt": f"R-{number:03d}", "date": day.isoformat(), "category": category, "vendor": vendors[category]}
        rows.append({**row, "amount": f"{amount:.2f}"})
    rows[11]["amount"] = ""
    return _csv(rows)


def _order(number: int, chance: random.Random) -> dict[str, str]:
    day = datetime.date(2025, 1, 1) + datetime.timedelta(days=int(chance.betavariate(2, 1.6) * 365))
    region = chance.choices(list(REGIONS), list(REGIONS.values()))[0]
    product = chance.choice(list(PRODUCTS))
    category, price = PRODUCTS[product]
    discount = chance.choice((0, 0, 0, 0.1, 0.2))
    return {
        "order_id": f"SO-{number:05d}",
        "date": day.isoformat(),
        "region": region,
        "channel": chance.choice(CHANNELS),
        "category": category,
        "product": product,
        "quantity": str(1 + int(chance.expovariate(0.9))),
        "unit_price": f"{price * (1 - discount):.2f}",
    }


def _csv(rows: list[dict[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def main() -> None:
    """Write the files."""
    EXAMPLES.mkdir(exist_ok=True)
    (EXAMPLES / "sales-2025.csv").write_text(sales(), encoding="utf-8")
    (EXAMPLES / "expenses-march.csv").write_text(expenses(), encoding="utf-8")


if __name__ == "__main__":
    main()
