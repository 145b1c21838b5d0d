// Elements, and Markdown as elements: text never becomes markup.

export const find = (selector) => document.querySelector(selector);

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|\[([^\]]+)\]\(([^)\s]+)\)|(https?:\/\/[^\s<>)"']+)|(\/mnt\/user-data\/[^\s<>)"'`]+)/g;

function inline(text, link) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    const [whole, , code, bold, label, target, url, path] = found;
    parts.push(text.slice(at, found.index));
    at = found.index + whole.length;
    const address = link(target ?? url ?? path ?? (code?.startsWith("/mnt/user-data/") ? code : ""));
    const shown = code ? element("code", {}, code) : bold ? element("strong", {}, ...inline(bold, link)) : label ?? whole;
    parts.push(address ? element("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, shown) : shown);
  }
  return [...parts, text.slice(at)];
}

// `link` gives the address for a target, or nothing if it is not to be a link.
export function markdown(text, link) {
  const root = element("div", { className: "ai" });
  const lines = text.split("\n");
  for (let n = 0; n < lines.length; n++) {
    const line = lines[n];
    const taken = (pattern) => {
      const block = [];
      while (n < lines.length && pattern.test(lines[n])) block.push(lines[n++]);
      n--;
      return block;
    };
    const fence = line.match(/^\s*(```+|~~~+)/);
    const heading = line.match(/^(#{1,6})\s+(.*)$/);
    if (fence) {
      const block = [];
      while (++n < lines.length && !lines[n].trim().startsWith(fence[1])) block.push(lines[n]);
      root.append(element("pre", {}, element("code", {}, block.join("\n"))));
    } else if (heading) {
      root.append(element(`h${Math.min(heading[1].length + 1, 4)}`, {}, ...inline(heading[2], link)));
    } else if (/^\s*(-{3,}|\*{3,})\s*$/.test(line)) {
      root.append(element("hr"));
    } else if (/^\s*\|.*\|\s*$/.test(line)) {
      const rows = taken(/^\s*\|.*\|\s*$/).filter((row) => !/^[\s|:-]+$/.test(row));
      const cells = (row) => row.trim().slice(1, -1).split("|");
      root.append(element("table", {}, ...rows.map((row, index) => element("tr", {}, ...cells(row).map((cell) =>
        element(index ? "td" : "th", {}, ...inline(cell.trim(), link)))))));
    } else if (/^\s*([-*+]|\d+[.)])\s+/.test(line)) {
      const items = taken(/^\s*([-*+]|\d+[.)])\s+|^\s+\S/);
      const list = element(/^\s*\d/.test(line) ? "ol" : "ul");
      for (const item of items) list.append(element("li", {}, ...inline(item.replace(/^\s*([-*+]|\d+[.)])\s+/, ""), link)));
      root.append(list);
    } else if (line.trim()) {
      root.append(element("p", {}, ...inline(taken(/^(?!\s*(```|~~~|#{1,6}\s|\||[-*+]\s|\d+[.)]\s))\s*\S/).join(" ") || lines[++n], link)));
    }
  }
  return root;
}
