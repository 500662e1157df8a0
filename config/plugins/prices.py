"""Puts the price of a product page into its record, as a number and a currency.

crawlkit run https://shop.example.com/ --plugin config/plugins/prices.py
crawlkit report shop.example.com.crawl --format csv --fields url,fields.price,fields.currency
"""

from typing import Any

from crawlkit.plugins import Page


def page(page: Page) -> dict[str, Any] | None:
    """Read the page's microdata (https://schema.org/Offer), where it has any."""
    if page.html is None:
        return None
    price = page.html.css_first("[itemprop=price]")
    currency = page.html.css_first("[itemprop=priceCurrency]")
    if price is None:
        return None
    text = price.attributes.get("content") or price.text(strip=True)
    return {"price": float(text), "currency": None if currency is None else currency.attributes.get("content")}


def priority(url: str) -> int | None:
    """Ask for the pages of products before all others of their host."""
    return 0 if "/product/" in url else None
