"use strict";
const number = new Intl.NumberFormat("en");

// Text of crawled pages goes through here only, and is never read as markup.
const element = (name, attributes, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") for (const [event, heard] of Object.entries(value)) made.addEventListener(event, heard);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
};

const size = (bytes) => {
  if (bytes === null) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
  return (unit === 0 ? bytes : bytes.toFixed(1)) + " " + units[unit];
};

const link = (url) => element("a", { href: url, rel: "noopener noreferrer nofollow", target: "_blank" }, url);

const SVG = "http://www.w3.org/2000/svg";
const bar = (share) => {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const rect = document.createElementNS(SVG, "rect");
  rect.setAttribute("width", String(Math.max(share * 100, share > 0 ? 0.5 : 0)));
  rect.setAttribute("height", "10");
  svg.append(rect);
  return svg;
};
